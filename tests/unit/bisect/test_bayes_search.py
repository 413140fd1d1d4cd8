"""The search that understands noise, in worlds whose truth is known."""

from __future__ import annotations

import math
import random
import statistics
from collections import Counter
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from worlds import World, sample_of, with_metric

from dsbisect.rows_study import MEASURE_ALL_UP_TO, ROWS
from dsharness.errors import StoreError
from dsharness.measure.metrics import COST, SYSCALLS
from dsharness.model import Campaign, SearchChoice
from dssearch.bayes.answer import second_step
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty, Tracks, believe
from dssearch.bayes.next_run import session_unknown
from dssearch.bayes.noise_shapes import REPEATED
from dssearch.bayes.prior import Belief, Budget, Costs, scatters
from dssearch.question import Answer, History, Question
from dssearch.search_record import choice_of, record_of, search_of

NAMES = [f"c{number:02}" for number in range(24)]


def world(step, noise=0.1, effect=3.0, seed=0, broken=(), names=NAMES):
    costs = {
        name: effect if step is not None and number >= step else 1.0
        for number, name in enumerate(names)
    }
    return World(costs, noise=noise, seed=seed, broken=frozenset(names[each] for each in broken))


@pytest.mark.whole
@pytest.mark.few(3)
@pytest.mark.parametrize("step", [1, 2, 11, 22, 23])
@pytest.mark.parametrize("noise", [0.02, 0.15])
def test_the_step_is_found(step, noise):
    boundary = world(step, noise).search(Bayes())
    assert boundary.found
    assert boundary.suspects == (NAMES[step],)
    assert boundary.direction == "slower"
    assert boundary.confidence >= 0.95
    assert boundary.chances[NAMES[step]] >= 0.9
    low, high = boundary.effect_interval
    assert low < 3.0 < high


@dataclass
class Counted(World):
    """What a run costs in it is a count."""

    def sample(self, row, turn):
        made = super().sample(row, turn)
        return with_metric(made, SYSCALLS, 12 * made.value("cost"))


@pytest.mark.parametrize(
    ("effect", "noise"), [(1.0, 0.01), (1.08, 0.01), (1.25, 0.01), (1.25, 0.05)]
)
def test_a_few_counts_of_each_row_decide(effect, noise):
    """Rows differ by their builds in what they cost, not in what they ask of the kernel."""
    costs = dict(zip(NAMES[:4], (1.0, 1.0, effect, effect), strict=True))
    for seed in range(5):
        counted = Counted(costs, noise=noise, seed=seed)
        search = Bayes(belief=ROWS, survey_up_to=MEASURE_ALL_UP_TO)
        boundary = counted.search(search, metric="syscalls")
        assert boundary.after == (NAMES[2] if effect > 1 else None), boundary.summary
        assert len(counted.taken) <= 20


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_rows_that_count_the_same_do_not_differ(rows, noise):
    """However alike: no step fits between such counts."""
    counted = Counted(dict.fromkeys(NAMES[:rows], 1.0), noise=noise)
    search = Bayes(belief=ROWS, survey_up_to=MEASURE_ALL_UP_TO)
    boundary = counted.search(search, metric="syscalls")
    assert boundary.direction == "none", boundary.summary
    assert len(counted.taken) <= 24


@pytest.mark.parametrize("effect", [1e-9, 1e-4, 3000.0, 1e7])
@pytest.mark.parametrize("rows", [2, 4, 24])
def test_a_step_of_any_size_is_one_step_of_that_size(effect, rows):
    """A count may begin at nothing."""
    step = rows // 2
    costs = {name: effect if at >= step else 1.0 for at, name in enumerate(NAMES[:rows])}
    search = Bayes(belief=ROWS, survey_up_to=MEASURE_ALL_UP_TO) if rows < 24 else Bayes()
    counted = Counted(costs, noise=0.01)
    boundary = counted.search(search, metric="syscalls")
    assert boundary.after == NAMES[step], boundary.summary
    floor = SYSCALLS.floor or 0.0
    real = (12 * effect + floor) / (12 + floor)
    assert boundary.effect == pytest.approx(max(real, 1 / real), rel=0.05)
    assert len(counted.taken) <= 24


def test_a_stray_call_in_a_counted_run_is_no_culprit():
    """One in a run of a hundred operations, in a third of the runs."""
    search = Bayes(belief=ROWS, survey_up_to=MEASURE_ALL_UP_TO)
    for seed in range(20):
        counted = Stray(dict.fromkeys(NAMES[:4], 1.0), seed=seed)
        boundary = counted.search(search, metric="syscalls")
        assert not boundary.found, boundary.summary


@dataclass
class Stray(World):
    """Nothing is called in it by an operation."""

    def sample(self, row, turn):
        made = super().sample(row, turn)
        stray = random.Random(f"{self.seed}/{row}/{turn}").random() < 0.3
        return with_metric(made, SYSCALLS, 0.01 if stray else 0.0)


def test_what_builds_are_known_to_differ_by_holds_for_counts_too():
    known = Belief(scatters=scatters((0.004, 1.0)))
    assert known.of_counts.scatters == known.scatters
    coarse = replace(ROWS, smallest_effect=1.25)
    assert coarse.of_counts.smallest_effect < coarse.smallest_effect


def test_an_improvement_is_found_and_said_to_be_one():
    boundary = world(9, effect=0.3).search(Bayes())
    assert (boundary.direction, boundary.after) == ("faster", NAMES[9])
    assert "the first end is the slow one" in boundary.summary


def test_ends_that_cost_the_same_are_not_said_to_differ():
    """Slower in the middle only."""
    costs = {name: 1.5 if 8 <= at < 16 else 1.0 for at, name in enumerate(NAMES)}
    for seed in range(4):
        boundary = World(costs, noise=0.03, seed=seed).search(Bayes(survey_up_to=len(NAMES)))
        assert boundary.found, boundary.summary
        assert "the first end is the slow one" not in boundary.summary


def test_no_culprit_is_named_where_there_is_none():
    boundary = world(None).search(Bayes())
    assert not boundary.found
    assert boundary.direction == "none"
    assert boundary.confidence >= 0.95
    # one size and its chance: what may be larger is less likely than the rest of that chance
    said = (
        f"no difference of {boundary.smallest_visible_pct:.0f} % or more found between c00 and c23"
    )
    assert boundary.summary.startswith(f"{said} with w (chance {boundary.confidence:.1%})")


def test_a_slope_has_no_culprit():
    slope = World({name: math.exp(0.08 * at) for at, name in enumerate(NAMES)}, noise=0.03)
    boundary = slope.search(Bayes())
    assert not boundary.found
    assert boundary.shape == "ramp", boundary.summary


def test_of_two_culprits_one_is_named_and_the_other_suspected():
    costs = {name: (3.0 if at >= 5 else 1.0) * (4.0 if at >= 17 else 1.0)
             for at, name in enumerate(NAMES)}  # fmt: skip
    boundary = World(costs, noise=0.05).search(Bayes())
    assert boundary.after in {NAMES[5], NAMES[17]}
    other = ({NAMES[5], NAMES[17]} - {boundary.after}).pop()
    assert other in boundary.also
    assert "; a second step" in boundary.summary
    assert boundary.chances[other] > 0


@pytest.mark.parametrize(
    ("chance", "words"), [(0.0912, "is possible (9%): c"), (0.9987, ": c (100%)")]
)
def test_a_second_step_is_possible_unless_it_is_certain(chance, words):
    assert second_step(chance, ("c",)).removeprefix("; a second step").strip() == words


def test_what_cannot_be_measured_stays_among_the_suspects():
    boundary = world(9, broken=(8, 9)).search(Bayes())
    assert boundary.found
    assert boundary.suspects == (NAMES[8], NAMES[9], NAMES[10])
    assert "could not be judged" in boundary.summary


@pytest.mark.parametrize("end", [0, 23])
def test_an_end_that_cannot_be_measured_moves_inwards(end):
    boundary = world(9, broken=(end,)).search(Bayes())
    assert boundary.after == NAMES[9]
    assert NAMES[end] in boundary.unmeasured


def test_nothing_that_can_be_measured_is_no_answer():
    boundary = world(2, broken=range(1, 24)).search(Bayes())
    assert boundary.direction == "unknown"
    assert "fewer than two" in boundary.summary


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "budget", [Budget(runs=7), Budget(builds=4, runs=30), Budget(seconds=200.0)]
)
def test_a_spent_budget_gives_the_best_set_so_far(budget):
    spent = world(13, noise=0.4, effect=1.5)
    boundary = spent.search(Bayes(budget=budget))
    assert boundary.direction == "unknown"
    assert NAMES[13] in boundary.suspects
    assert len(spent.taken) <= 61
    assert len({sample.candidate_id for sample in spent.taken}) <= 8


@settings(max_examples=settings.default.max_examples // 4)
@given(count=st.integers(2, 200), data=st.data(), effect=st.sampled_from([0.2, 1.3, 20.0]))
def test_without_noise_it_builds_no_more_than_halving(count, data, effect):
    names = [f"n{at:03}" for at in range(count)]
    step = data.draw(st.integers(1, count - 1))
    quiet = world(step, noise=1e-9, effect=effect, names=names)
    boundary = quiet.search(Bayes())
    assert boundary.after == names[step]
    assert len({sample.candidate_id for sample in quiet.taken}) <= 2 + math.ceil(
        math.log2(count - 1 or 1)
    )


@pytest.mark.parametrize(("effect", "asks"), [(1.3, True), (20.0, False)])
def test_a_small_step_is_named_after_repeated_runs_alone(effect, asks):
    """Bisecting fits a step to single runs of which some are slow ones, whatever they are of."""
    quiet = world(13, noise=0.01, effect=effect)
    assert quiet.search(Bayes()).after == NAMES[13]
    repeated = len(quiet.taken) - len({sample.candidate_id for sample in quiet.taken})
    assert (repeated >= REPEATED) is asks


@pytest.mark.whole
@settings(max_examples=2, deadline=None)
@given(step=st.integers(1, 23), seed=st.integers(0, 99), factor=st.sampled_from([1e-3, 7.0, 1e4]))
def test_a_factor_on_all_values_changes_no_step(step, seed, factor):
    one = world(step, noise=0.2, effect=1.6, seed=seed)
    other = World({name: factor * cost for name, cost in one.costs.items()}, noise=0.2, seed=seed)
    found, scaled = one.search(Bayes()), other.search(Bayes())
    assert [each.candidates for each in one.asked] == [each.candidates for each in other.asked]
    assert (found.after, found.direction) == (scaled.after, scaled.direction)


@settings(max_examples=settings.default.max_examples // 8)
@given(step=st.integers(1, 23), seed=st.integers(0, 99))
def test_what_candidates_are_called_changes_nothing(step, seed):
    """Equal candidates may change places: only places count."""
    one = world(step, seed=seed)
    question = Question(series_id="s", line=tuple(NAMES), workload_id="w", settings_id="default")
    boundary = one.search(Bayes())
    called = dict(zip(NAMES, reversed(NAMES), strict=True))
    samples = {
        called[name]: tuple(
            sample.model_copy(update={"candidate_id": called[name]})
            for sample in one.taken if sample.candidate_id == name
        )
        for name in NAMES
    }  # fmt: skip
    renamed = Question(
        series_id="s", line=tuple(reversed(NAMES)), workload_id="w", settings_id="default"
    )
    again = Bayes().next_step(renamed, History(samples=samples))
    assert isinstance(again, Answer)
    assert again.boundary.after == called[boundary.after]
    assert again.boundary.confidence == boundary.confidence
    assert question.line != renamed.line


@settings(max_examples=settings.default.max_examples // 6)
@given(step=st.integers(1, 23), seed=st.integers(0, 99), stop=st.integers(2, 30))
@example(step=4, seed=84, stop=14)  # a build between two levels, next to what is excluded
@example(step=12, seed=48, stop=16)  # a step of which the runs say nothing
def test_mass_is_one_and_never_on_what_is_excluded(step, seed, stop):
    one = world(step, seed=seed, noise=0.3)
    one.search(Bayes(budget=Budget(runs=stop)))
    samples = {name: tuple(s for s in one.taken[:stop] if s.candidate_id == name) for name in NAMES}
    question = Question(series_id="s", line=tuple(NAMES), workload_id="w", settings_id="default")
    line = Tracks(prior={NAMES[4]: 0.0}).of(question.line)
    found = believe(question, History(samples=samples), line, Bayes().belief, {})
    assert found is not None
    mass = found.mass()
    assert mass.sum() + found.posterior.none + found.posterior.ramp == pytest.approx(1.0)
    assert mass[0] == 0.0
    assert mass[4] == 0.0
    assert mass.min() >= 0.0


def test_a_prior_moves_the_first_look():
    plain, biased = world(3, names=NAMES), world(3, names=NAMES)
    plain.search(Bayes())
    biased.search(Bayes(prior=dict.fromkeys(NAMES[1:5], 20.0)))
    first = [next(each for each in one.asked if "halves" in each.why) for one in (plain, biased)]
    assert NAMES.index(first[1].candidates[0]) < NAMES.index(first[0].candidates[0])


def test_a_wrong_prior_costs_runs_but_no_wrong_answer():
    wrong = world(20)
    boundary = wrong.search(Bayes(prior=dict.fromkeys(NAMES[1:5], 5.0)))
    assert boundary.after == NAMES[20]


def test_a_short_line_is_surveyed_whole():
    short = world(2, names=NAMES[:5])
    short.search(Bayes(survey_up_to=6, certainty=Certainty(least_runs=2)))
    counts = {name: sum(s.candidate_id == name for s in short.taken) for name in NAMES[:5]}
    assert min(counts.values()) >= 2


def test_a_machine_that_changed_is_told():
    """The canary: the same end, early and late."""
    steady = world(None, noise=0.02)
    for turn in range(24):
        for name in (NAMES[0], NAMES[23]):
            sample = steady.sample(name, turn)
            if turn >= 12:
                sample = with_metric(sample, COST, (sample.value("cost") or 0.0) * 1.5)
            steady.taken.append(sample)
    spent = Bayes(budget=Budget(runs=48))
    assert "the machine has changed" in steady.search(spent).summary


def test_every_step_says_what_is_believed():
    one = world(13)
    one.search(Bayes())
    shown = [each.outlook for each in one.asked[1:]]
    assert all(outlook is not None for outlook in shown)
    likely = shown[-1].shares[0]
    assert NAMES.index(likely.after) < 13 <= NAMES.index(likely.last)
    assert 0 <= shown[0].none <= 1


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("step", [None, 13])
def test_what_is_left_is_told_in_the_right_size(step):
    """The ETA in the middle of a search; without a step it was once 40 times too long."""
    shares = []
    for seed in range(3):
        one = world(step, noise=0.05, effect=1.15, seed=seed)
        one.search(Bayes())
        left = len(one.taken)
        for asked in one.asked:
            if asked.turn:
                shares.append((asked.remaining + 1) / left)
            left -= len(asked.candidates)
    assert 0.3 < statistics.median(shares) < 3


def test_a_search_is_what_it_was_recorded_as():
    search = Bayes(
        certainty=Certainty(level=0.9), costs=Costs(ready=frozenset({"a"})),
        budget=Budget(runs=9), prior={"a": 2.0}, survey_up_to=3,
    )  # fmt: skip
    campaign = Campaign(
        id="c", series_id="s", workload_id="w", settings_id="a", started_at="",
        search=choice_of(search),
    )  # fmt: skip
    again = search_of(campaign)
    assert isinstance(again, Bayes)
    assert record_of(again) == record_of(search)


@pytest.mark.parametrize(
    "facts", [{"name": "oracle"}, {"name": "statistical", "options": {"costs": 3}}]
)
def test_a_search_that_nobody_knows_is_told(facts):
    campaign = Campaign(
        id="c", series_id="s", workload_id="w", settings_id="a", started_at="",
        search=SearchChoice.model_validate(facts),
    )  # fmt: skip
    with pytest.raises(StoreError):
        search_of(campaign)


def test_the_same_samples_give_the_same_answer():
    assert world(5, seed=3).search(Bayes()) == world(5, seed=3).search(Bayes())


def test_the_neighbours_get_as_many_runs_as_the_figures_need():
    one = world(13)
    boundary = one.search(Bayes(certainty=Certainty(least_runs=3)))
    for name in (boundary.before, boundary.after):
        assert sum(sample.candidate_id == name for sample in one.taken) >= 3
    assert one.asked[-1].why.startswith("confirm")


@pytest.mark.whole
@settings(max_examples=settings.default.max_examples // 5)
@given(step=st.integers(1, 23), seed=st.integers(0, 99), noise=st.sampled_from([0.1, 0.3]))
def test_each_pair_is_measured_as_often_in_both_orders(step, seed, noise):
    one = world(step, seed=seed, noise=noise, effect=1.5)
    one.search(Bayes(costs=Costs(paired=True), budget=Budget(runs=50)))
    orders = Counter(each.candidates for each in one.asked if len(each.candidates) == 2)
    assert all(abs(count - orders[pair[::-1]]) <= 1 for pair, count in orders.items())


@pytest.mark.parametrize("told", [False, True], ids=["by a pause", "by the lab's start"])
def test_both_ends_are_measured_again_in_a_new_session(told):
    def taken(name, day, second, turn):
        at = {"session": str(day)} if told else {}
        when = f"2026-01-{1 if told else day:02}T00:{day:02}:{second:02}+00:00"
        return sample_of(name, 1.0, turn, started_at=when, **at)

    line = Tracks().of(tuple(NAMES))
    days = {"c00": (1, 1, 2), "c11": (1, 2), "c12": (1, 2), "c23": (1, 1)}
    samples = {
        name: tuple(taken(name, day, at, day * 10 + at) for at, day in enumerate(each))
        for name, each in days.items()
    }
    question = Question(series_id="s", line=line.names, workload_id="w", settings_id="default")
    found = believe(question, History(samples=samples), line, Bayes().belief, {})
    assert found is not None
    assert found.posterior.runs.sessions.tolist() == [0] * 6 + [1] * 3
    assert session_unknown(found)
    again = (taken("c23", 2, 30, 30),)
    samples = {**samples, "c23": samples["c23"] + again}
    found = believe(question, History(samples=samples), line, Bayes().belief, {})
    assert found is not None
    assert not session_unknown(found)
