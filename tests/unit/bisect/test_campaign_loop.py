from __future__ import annotations

import io

import pytest
from measured import WorldBenches as Benches
from measured import own
from observers import RecordingObserver
from worlds import TEN_RUNS, World

from dsharness.errors import (
    DiskFullError,
    ExitCode,
    InconclusiveError,
    SystematicError,
    UnreachableError,
)
from dsharness.model import LdcltWorkload, Turn, TurnState
from dslab.campaign_loop import CampaignOrder
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question

WORKLOAD = LdcltWorkload(id="w", title="binds")
QUESTION = Question(series_id="s", line=("a", "b", "c"), workload_id="w", settings_id="default")


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def run(store, benches, observer=None, search=None):
    return CampaignOrder(
        question=QUESTION, workload=WORKLOAD, search=search or TEN_RUNS, lab=benches, store=store
    ).run(observer or RecordingObserver())


WORLD = World({"a": 1, "b": 1, "c": 20})


def test_every_sample_is_stored_before_the_next_is_taken(store):
    benches = Benches(WORLD)
    original = benches.take

    def counting(turn):
        for sample in original(turn):
            assert len(store.samples()) == benches.taken - 1
            yield sample

    benches.take = counting
    campaign = run(store, benches)
    assert campaign.boundary.after == "c"
    assert store.campaign(campaign.id).boundary == campaign.boundary


@pytest.mark.few(1)
@pytest.mark.parametrize("stop_after", [0, 1, 6])
def test_resumes_where_it_was_interrupted(store, stop_after):
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD, stop_after=stop_after))
    assert len(store.samples()) == stop_after
    rest, observer = Benches(WORLD), RecordingObserver()
    campaign = run(store, rest, observer)
    whole = Benches(WORLD)
    with Store.open(f"{store}.whole.db") as other:
        run(other, whole)
    assert campaign.boundary.after == "c"
    assert [name for name, *_ in observer.records].count("resumed") == 1
    assert rest.taken <= whole.taken - stop_after + 1  # at most the half-measured turn again
    assert len(store.campaigns()) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize("samples", [0, 1])
def test_an_interrupted_turn_is_taken_again(store, samples):
    """Half a duet is none: what the two have in common would not cancel out."""
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD, stop_after=samples))
    (campaign,) = store.campaigns()
    assert [turn.state for turn in store.turns(campaign.id)] == [TurnState.PLANNED]
    run(store, Benches(WORLD))
    first, second, *_ = store.turns(campaign.id)
    assert first.state is TurnState.GIVEN_UP
    assert (second.number, second.attempt, second.state) == (0, 2, TurnState.DONE)
    assert second.candidates == first.candidates
    taken = store.samples(campaign_id=campaign.id)
    assert store.sample_counts()[campaign.id] == len(taken)
    of_it = [each.id for each in taken if each.turn == 0]
    assert sorted(of_it) == sorted(map(second.sample_id, second.candidates))


@pytest.mark.whole
def test_a_turn_whose_samples_are_all_there_is_done(store):
    """It was killed between its last sample and its end."""
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD, stop_after=2))
    (campaign,) = store.campaigns()
    done, begun = store.turns(campaign.id)
    put = store.put

    def killed(value):
        if isinstance(value, Turn) and value.state is TurnState.DONE:
            raise KeyboardInterrupt
        return put(value)

    store.put = killed
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD))
    store.put = put
    run(store, Benches(WORLD))
    again = {turn.id: turn.state for turn in store.turns(campaign.id)}
    assert (again[done.id], again[begun.id]) == (TurnState.DONE, TurnState.GIVEN_UP)
    assert again[begun.model_copy(update={"attempt": 2}).id] is TurnState.DONE


@pytest.mark.whole
def test_what_could_not_be_served_is_known_after_an_interruption(store):
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD, refuses={"b"}, stop_after=6))
    asked = []

    class Asked(Benches):
        def ready(self, candidate):
            asked.append(candidate)
            super().ready(candidate)

    (campaign,) = store.campaigns()
    assert {"b": "b did not become ready"} in [t.refused for t in store.turns(campaign.id)]
    again = run(store, Asked(WORLD, refuses={"b"}))
    assert "b" not in asked
    assert again.boundary.unmeasured == {"b": "b did not become ready"}


def test_failures_that_ended_a_run_count_against_nobody(store):
    """What they had in common may be put right by then."""
    line = tuple(f"c{number}" for number in range(9))
    question = Question(series_id="s", line=line, workload_id="w", settings_id="default")
    costs = {name: 1 if number < 4 else 9 for number, name in enumerate(line)}

    def search(benches):
        return CampaignOrder(
            question=question, workload=WORKLOAD, search=Bayes(), lab=benches, store=store
        ).run(RecordingObserver())

    with pytest.raises(SystematicError):
        search(Benches(World(costs), refuses=set(line)))
    found = search(Benches(World(costs))).boundary
    assert (found.after, found.unmeasured) == ("c4", {})
    assert len(store.campaigns()) == 1


def test_samples_of_an_attempt_that_was_given_up_stay_and_do_not_count(store):
    turn = Turn(campaign_id="c", number=0, candidates=("a",), workload=WORKLOAD)
    store.put(turn)
    store.put(turn.ended(TurnState.GIVEN_UP))
    store.put(own(WORLD.sample("a", 0), turn))  # from a worker that was slower than that
    assert store.samples(campaign_id="c") == []
    out = io.StringIO()
    store.export_jsonl(out)
    assert turn.sample_id("a") in out.getvalue()


def test_a_turn_without_a_server_says_why(store):
    campaign = run(store, Benches(WORLD, refuses={"b"}))
    failed = [turn for turn in store.turns(campaign.id) if turn.state is TurnState.FAILED]
    assert [turn.refused for turn in failed] == [{"b": "b did not become ready"}]


@pytest.mark.whole
def test_another_machine_does_not_resume(store):
    with pytest.raises(KeyboardInterrupt):
        run(store, Benches(WORLD, stop_after=4))
    observer = RecordingObserver()
    run(store, Benches(WORLD, machine="two"), observer)
    assert "resumed" not in [name for name, *_ in observer.records]
    assert len(store.campaigns()) == 2


def test_a_server_that_does_not_start_is_unmeasurable_not_slow(store):
    observer = RecordingObserver()
    campaign = run(store, Benches(WORLD, refuses={"b"}), observer)
    assert campaign.boundary.suspects == ("b", "c")
    assert ("unmeasurable", "b", "b did not become ready") in observer.records


@pytest.mark.whole
def test_a_full_disk_ends_the_campaign_and_the_next_run_resumes(store):
    benches = Benches(WORLD)
    original = benches.take

    def full(turn):
        for sample in original(turn):
            if benches.taken > 3:
                raise DiskFullError("no space left")
            yield sample

    benches.take = full
    with pytest.raises(DiskFullError):
        run(store, benches)
    assert len(store.samples()) == 3
    assert run(store, Benches(WORLD)).boundary.after == "c"


@pytest.mark.parametrize(("kind", "taken"), [("rows", 3), ("commits", 1)])
def test_one_failure_after_the_other_of_the_same_kind_ends_it(store, kind, taken):
    line = tuple(f"c{number}" for number in range(20))
    benches = Benches(World(dict.fromkeys(line, 1)), refuses=set(line))
    asked = []
    original = benches.ready

    def counting(row):
        asked.append(row)
        original(row)

    benches.ready = counting
    if kind == "commits":
        benches.unmeasurable = {each: f"{each} did not become ready" for each in ("c0", "c19")}
    with pytest.raises(SystematicError, match="did not become ready") as caught:
        CampaignOrder(
            question=Question(series_id="s", line=line, workload_id="w", settings_id="default"),
            workload=WORKLOAD,
            search=Bayes(),
            lab=benches,
            store=store,
            kind=kind,
        ).run(RecordingObserver())
    assert caught.value.exit_code == ExitCode.SURROUNDINGS
    assert len([row for row in asked if row in benches.refuses]) == taken


@pytest.mark.whole
def test_what_is_wrong_with_the_surroundings_is_held_against_nobody(store):
    benches, observer = Benches(WORLD), RecordingObserver()

    def unreachable(_):
        raise UnreachableError("the crates cannot be fetched: could not resolve host")

    benches.ready = unreachable
    with pytest.raises(UnreachableError) as caught:
        run(store, benches, observer)
    assert caught.value.exit_code == ExitCode.REGISTRY
    assert "unmeasurable" not in [name for name, *_ in observer.records]
    assert run(store, Benches(WORLD)).boundary.after == "c"


@pytest.mark.whole
def test_a_finished_campaign_is_measured_anew(store):
    run(store, Benches(WORLD))
    observer = RecordingObserver()
    run(store, Benches(WORLD), observer)
    assert "resumed" not in [name for name, *_ in observer.records]


class Disturbed(Benches):
    """Each run is disturbed from outside, until the machine is left alone."""

    left = 0

    def take(self, turn):
        for sample in super().take(turn):
            self.left -= 1
            spoilt = {"invalid": ("the load did not finish",), "disturbed": ("paused for 9 s",)}
            yield sample.model_copy(update=spoilt if self.left >= 0 else {})


def test_disturbed_runs_are_repeated_and_count_against_nobody(store):
    benches = Disturbed(WORLD)
    benches.left = 15
    found = run(store, benches, search=Bayes())
    assert found.boundary.after == "c"
    assert found.boundary.unmeasured == {}


def test_disturbance_without_end_ends_the_search_without_a_verdict(store):
    benches = Disturbed(WORLD)
    benches.left = 10_000
    with pytest.raises(InconclusiveError, match="paused for 9 s"):
        run(store, benches, search=Bayes())
