"""Which metric decides is part of the question."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

import pytest
from measured import WorldBenches
from observers import RecordingObserver
from shipped import MATRIX
from worlds import World, sample_of, with_metric

from dsbisect.cli.common_options import DEFAULT_METRIC
from dsharness.errors import UsageError
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import FSYNCS, GROWTH, LATENCY, RATE, SYSCALLS, find_metric
from dsharness.model import DECIDER, Boundary, LdcltWorkload, Sample
from dslab.campaign_loop import CampaignOrder
from dsresults.report import report_data
from dsresults.report.report_data import repeat_command
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.question import Question
from dssearch.search_record import replay, search_of

NAMES = tuple(f"c{number}" for number in range(12))
STEP = 7
WORKLOAD = LdcltWorkload(id="w", title="binds")


class WaitingWorld(World):
    """CPU time is the same for all; from STEP on each operation waits three times as long."""

    load_bound = False

    def sample(self, row: str, turn: int) -> Sample:
        taken = super().sample(row, turn)
        chance = random.Random(f"waits/{self.seed}/{row}/{turn}")
        waits = (3.0 if NAMES.index(row) >= STEP else 1.0) * chance.lognormvariate(0, 0.03)
        taken = with_metric(taken, RATE, 1000 / waits)
        taken = with_metric(taken, LATENCY, 500 * waits)
        return taken.model_copy(update={"load_bound": self.load_bound})


def world() -> WaitingWorld:
    return WaitingWorld(dict.fromkeys(NAMES, 1.0))


def question(metric: str) -> Question:
    return Question(
        series_id="s", line=NAMES, workload_id="w", settings_id="default", metric=metric
    )


@pytest.mark.parametrize("metric", ["latency", "rate"])
def test_a_step_that_only_one_metric_shows_is_found_with_that_one(metric: str) -> None:
    found = world().search(Bayes(), metric=metric)
    assert (found.found, found.after, found.metric) == (True, f"c{STEP}", metric)


def test_and_by_cost_there_is_no_difference() -> None:
    found = world().search(Bayes())
    assert (found.found, found.direction, found.metric) == (False, "none", "cost")


def test_the_answer_is_in_the_words_of_its_metric() -> None:
    found = world().search(Bayes(), metric="latency").summary
    assert f"c{STEP} is the first that takes longer: it takes 2.94 times longer than c6 (" in found


def test_where_it_was_not_measured_the_rate_decides_and_the_answer_says_so() -> None:
    class Unread(WaitingWorld):
        def sample(self, row: str, turn: int) -> Sample:
            return with_metric(super().sample(row, turn), LATENCY, None)

    found = Unread(dict.fromkeys(NAMES, 1.0)).search(Bayes(), metric="latency")
    assert (found.after, found.metric) == (f"c{STEP}", "rate")


def test_a_rate_of_a_load_without_a_cpu_left_gets_a_word() -> None:
    bound = world()
    bound.load_bound = True
    assert "the load had no CPU left" in bound.search(Bayes(), metric="rate").summary


def campaign_of(store: Store, metric: str, benches: WorldBenches) -> tuple[Boundary | None, str]:
    done = CampaignOrder(
        question=question(metric), workload=WORKLOAD, search=Bayes(), lab=benches, store=store
    ).run(RecordingObserver())
    again = replay(done, store.samples(campaign_id=done.id), search_of(done))
    assert again.agrees is True
    return done.boundary, done.id


def test_it_is_recorded_so_that_a_replay_decides_by_it(tmp_path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        boundary, id_ = campaign_of(store, "latency", WorldBenches(world()))
        assert boundary is not None
        assert boundary.after == f"c{STEP}"
        stored = store.campaign(id_)
        assert stored is not None
        assert stored.metric == "latency"


@pytest.mark.whole
def test_another_metric_is_another_question_and_resumes_nothing(tmp_path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        with pytest.raises(KeyboardInterrupt):
            campaign_of(store, "latency", WorldBenches(world(), stop_after=3))
        campaign_of(store, "rate", WorldBenches(world()))
        assert [campaign.metric for campaign in store.campaigns()] == ["latency", "rate"]


def test_a_wrong_name_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UsageError, match=r"no metric 'latencie'\. Perhaps you meant 'latency'"):
        find_metric("latencie")


def test_the_command_line_and_the_model_agree() -> None:
    assert DEFAULT_METRIC == DECIDER


@pytest.mark.whole
def test_a_report_keeps_answers_by_several_metrics_apart(tmp_path) -> None:
    with Store.open(tmp_path / "results.db") as store:
        for metric in ("cost", "latency"):
            campaign_of(store, metric, WorldBenches(world()))
        campaigns = store.campaigns()
        data = report_data(MATRIX, campaigns, store.samples(), {})
    tables = {section.comparison.metric: section.comparison for section in data.sections}
    assert set(tables) == {"cost", "latency"}
    assert "--metric latency" in repeat_command(tables["latency"])
    assert "--metric" not in repeat_command(tables["cost"])
    by_latency = next(one for one in data.sections if one.comparison.metric == "latency")
    assert not any("CPU time" in each.text for each in by_latency.findings)


@pytest.mark.parametrize(
    ("gained", "times"), [(0.0, 1.0), (-50.0, 1.0), (64.0, 2.0), (576.0, 10.0)]
)
def test_growth_counts_from_where_it_may_be_a_leak(gained: float, times: float) -> None:
    """No growth at all is a good value, and less than none is as good."""
    found = GROWTH.slowness(with_metric(sample_of("a", 1.0, 0), GROWTH, gained))
    assert found == pytest.approx(64 * times)
    assert GROWTH.at_slowness(0.0, times) == pytest.approx(64 * (times - 1))


@dataclass
class Counting(World):
    """What an operation takes is counted, by a metric that adds something to counts for logs."""

    metric: Metric = FSYNCS

    def sample(self, row: str, turn: int) -> Sample:
        chance = random.Random(f"{self.seed}/{row}/{turn}/count")
        value = self.costs[row] * (1 + self.noise * chance.gauss())
        return with_metric(sample_of(row, 1.0, turn), self.metric, value)

    def answer(self) -> Boundary:
        return self.search(Bayes(), metric=self.metric.name)


def stepped(before: float, after: float, *, alone: bool = False) -> dict[str, float]:
    changed = {STEP} if alone else set(range(STEP, len(NAMES)))
    return {name: after if at in changed else before for at, name in enumerate(NAMES)}


@pytest.mark.parametrize(
    ("metric", "before", "after", "said"),
    [
        (FSYNCS, 0.0, 2.0, "the first that flushes more to disk: from 0 to 2 flushes an operation"),
        (FSYNCS, 2.0, 0.0, "the first that flushes less to disk: from 2 to 0 flushes an operation"),
        (GROWTH, 0.0, 216.0, "the first that grows more: from 0 to 216 bytes an operation"),
        (SYSCALLS, 12.0, 18.0, "from 12 to 18 system calls an operation"),
    ],
)
def test_a_step_of_counts_is_told_as_counts(
    metric: Metric, before: float, after: float, said: str
) -> None:
    """With what is added for logs, 0 to 2 flushes read "11.02 times more (10.67 to 11.32)"."""
    found = Counting(stepped(before, after), noise=0.0, metric=metric).answer()
    assert found.after == f"c{STEP}"
    assert said in found.summary
    assert "times" not in found.summary
    assert found.counts is not None
    assert (found.counts.before, found.counts.after) == pytest.approx((before, after))
    assert Boundary.model_validate_json(found.model_dump_json()) == found


def test_no_step_of_counts_is_told_as_counts_too() -> None:
    found = Counting(stepped(12.0, 12.0), noise=0.01, metric=SYSCALLS).answer()
    assert found.direction == "none"
    assert re.match(
        r"no difference of [\d.]+ system calls an operation or more found between", found.summary
    )
    assert found.counts is None


def test_what_counts_more_alone_is_told_as_counts() -> None:
    looked = Bayes(certainty=Certainty(inside=10))
    found = Counting(stepped(2.0, 6.0, alone=True), noise=0.01).search(looked, metric="fsyncs")
    assert re.search(
        r"alone flushes more to disk \(from 2 to [56]\.?\d* flushes an operation\)", found.summary
    )


def test_intervals_of_counts_hold_them() -> None:
    """They held the truth in 1 of 10: what is added for logs made 1.46 times as many 1.18 times."""
    held = {"before": 0, "after": 0, "difference": 0}
    tries = 24
    for seed in range(tries):
        counts = Counting(stepped(0.9, 1.31), noise=0.02, seed=seed).answer().counts
        assert counts is not None
        for name, truth in (("before", 0.9), ("after", 1.31), ("difference", 0.41)):
            low, high = getattr(counts, f"{name}_interval")
            held[name] += low <= truth <= high
            assert high - low < 0.2
    assert min(held.values()) >= tries - 4


def test_a_leak_is_found_by_growth() -> None:
    class Leaking(WaitingWorld):
        def sample(self, row: str, turn: int) -> Sample:
            gained = (600.0 if NAMES.index(row) >= STEP else 0.0) + 30.0 * (turn % 3)
            return with_metric(super().sample(row, turn), GROWTH, gained)

    found = Leaking(dict.fromkeys(NAMES, 1.0)).search(Bayes(), metric="growth")
    assert (found.found, found.after, found.metric) == (True, f"c{STEP}", "growth")
