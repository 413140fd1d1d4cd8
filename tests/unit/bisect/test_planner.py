"""What the planner never does, and what a kill at any moment costs."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from measured import WorldBenches
from observers import RecordingObserver
from worlds import World, sample_of

from dsharness.errors import InconclusiveError
from dsharness.measure.metrics import COST
from dsharness.model import LdcltWorkload, Machine, Sample, Starts, Turn, TurnState
from dslab.campaign_loop import CampaignOrder, CampaignState, TurnTaker, leased, turn_of
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Budget, Costs
from dssearch.planner import Rounds, advance, history_of, refuse_endless_disturbance
from dssearch.question import Enough, History, Measure, Pending, Question, Search, Wanted

LINE = tuple("abcdefgh")
WORKLOAD = LdcltWorkload(id="w", title="binds")
QUESTION = Question(series_id="s", line=LINE, workload_id="w", settings_id="default")
STEP = World({name: 1.0 if name < "d" else 1.4 for name in LINE})


def turn(number: int, state: TurnState, *names: str, attempt: int = 1) -> Turn:
    return Turn(
        campaign_id="c", number=number, attempt=attempt, candidates=names, workload=WORKLOAD,
        state=state,
    )  # fmt: skip


@st.composite
def stored(draw: st.DrawFn) -> list[Turn]:
    """Turns of any states; attempts at one number follow each other."""
    turns: list[Turn] = []
    for number in draw(st.lists(st.integers(0, 6))):
        attempt = 1 + sum(each.number == number for each in turns)
        state, names = draw(st.sampled_from(TurnState)), draw(st.permutations(LINE))
        turns.append(turn(number, state, *names[:2], attempt=attempt))
    return turns


@given(turns=stored(), rounds=st.integers(1, 20))
def test_a_turn_is_planned_once(turns: list[Turn], rounds: int) -> None:
    """Its number is behind all that stand, and no attempt that failed has its id."""
    step = advance(QUESTION, Rounds.of(rounds), History(), turns)
    if not isinstance(step, Measure):
        assert any(each.state is TurnState.PLANNED for each in turns)
        return
    standing = [each for each in turns if each.state in {TurnState.PLANNED, TurnState.DONE}]
    assert all(step.turn > each.number for each in standing)
    assert (step.turn, step.attempt) not in {(each.number, each.attempt) for each in turns}
    assert sorted(step.candidates) == sorted(LINE)


@given(first=st.integers(0, 9), meetings=st.integers(1, 5))
def test_two_that_meet_again_swap(first: int, meetings: int) -> None:
    """What drifts within a turn cancels over both, wherever other turns lie between them."""
    pair = Question(series_id="s", line=("a", "b"), workload_id="w", settings_id="default")
    begins: list[str] = []
    turns = [turn(number, TurnState.DONE, "c") for number in range(first)]
    for _ in range(meetings):
        step = advance(pair, Rounds.of(meetings), History(), turns)
        assert isinstance(step, Measure)
        begins.append(step.candidates[0])
        turns.append(turn(step.turn, TurnState.DONE, *step.candidates))
        turns.append(turn(step.turn + 1, TurnState.DONE, "c"))
    assert all(one != other for one, other in pairwise(begins))


@cache
def after(turns: int) -> tuple[History, tuple[Turn, ...]]:
    """What is known after so many turns of the search."""
    if not turns:
        return History(), ()
    history, taken = after(turns - 1)
    step = advance(QUESTION, Bayes(), history, taken)
    assert isinstance(step, Measure)
    samples = [STEP.sample(name, step.turn) for name in step.candidates]
    return history.after(samples, {}), (*taken, turn(step.turn, TurnState.DONE, *step.candidates))


@pytest.mark.parametrize("turns", [0, 1, 5])
def test_what_is_under_way_is_not_asked_for_again(turns: int) -> None:
    history, known = after(turns)
    taken = list(known)
    for _ in range(3):
        step = advance(QUESTION, Bayes(), history, taken)
        if not isinstance(step, Measure):
            assert isinstance(step, Enough)
            assert len(taken) > turns, "with nothing under way there is something to measure"
            return
        pending = [set(each.candidates) for each in taken if each.state is TurnState.PLANNED]
        assert set(step.candidates) not in pending
        taken.append(turn(step.turn, TurnState.PLANNED, *step.candidates))


def test_while_the_middle_is_built_others_halve_what_it_will_leave() -> None:
    """A machine that would only measure the ends again gains no time."""
    line = tuple(f"c{number:02}" for number in range(64))
    question = Question(series_id="s", line=line, workload_id="w", settings_id="default")
    search = Bayes(costs=Costs(run_s=5.0, start_s=0.0, prepare_s=60.0))
    ends = [World(dict.fromkeys(line, 1.0) | {line[-1]: 1.4}).sample(each, turn)
            for turn in range(3) for each in (line[0], line[-1])]  # fmt: skip
    history = History.of_samples(ends)
    taken = [turn(number, TurnState.DONE, line[0], line[-1]) for number in range(3)]
    asked: list[int] = []
    for _ in range(3):
        step = advance(question, search, history, taken)
        assert isinstance(step, Measure)
        taken.append(turn(step.turn, TurnState.PLANNED, *step.candidates))
        asked += [line.index(name) for name in step.candidates if name not in {line[0], line[-1]}]
    assert asked == [31, 47, 15]


def test_a_budget_counts_the_runs_that_are_under_way() -> None:
    history, taken = after(2)
    runs = sum(map(len, history.samples.values()))
    search = Bayes(budget=Budget(runs=runs + 1))
    assert isinstance(advance(QUESTION, search, history, taken), Measure)
    pending = turn(2, TurnState.PLANNED, "d")
    assert isinstance(advance(QUESTION, search, history, [*taken, pending]), Enough)


def test_a_candidate_whose_time_is_up_each_time_is_tried_more_often() -> None:
    """It is slow, and not broken."""
    late = {"at_least": {"cost": COST.measured(3.0)}}
    runs = [each.model_copy(update=late) for each in runs_of("a", 0, 7)]
    assert History.of_samples(runs[:6]).why_not("a") is None
    assert History.of_samples(runs).why_not("a") is not None


def runs_of(name: str, usable: int, failed: int) -> list[Sample]:
    """The failures come last."""
    ended = {"invalid": ("the load did not finish",), "log": "x.log"}
    return [
        sample_of(name, 1.0, number, **(ended if number >= usable else {}))
        for number in range(usable + failed)
    ]


@pytest.mark.parametrize(
    ("usable", "failed", "dropped", "end_dropped"),
    [
        (0, 2, False, False), (0, 3, True, False), (0, 5, True, False), (0, 6, True, True),
        (1, 3, False, False), (1, 11, True, False), (1, 15, True, True),
        (8, 3, False, False), (8, 12, False, False), (8, 60, True, True),
    ],
)  # fmt: skip
def test_failing_often_is_a_rate(
    usable: int, failed: int, *, dropped: bool, end_dropped: bool
) -> None:
    """Three in a row dropped a candidate however many usable runs it had."""
    known = History.of_samples(runs_of("a", usable, failed))
    assert (known.why_not("a") is not None) is dropped
    as_end = replace(known, ends=("a", "z"))
    why = as_end.why_not("a")
    assert (why is not None) is end_dropped
    if why:
        times = f"{failed} runs in a row" if not usable else f"{failed} of {usable + failed} runs"
        assert why == f"{times} failed: the load did not finish (x.log)"
    assert known.failure_share("a") == pytest.approx(failed / (usable + failed + 1))
    assert known.failure_share("never measured") == 0


@dataclass
class Flaky(World):
    """Some runs of every candidate are not done in time, by chance."""

    share: float = 0.35

    def sample(self, row: str, turn: int) -> Sample:
        taken = super().sample(row, turn)
        late = random.Random(f"late {self.seed}/{row}/{turn}").random() < self.share
        bound = {"cost": COST.measured(self.costs[row] / 2)}
        spoilt = {"invalid": ("the load did not finish",), "at_least": bound, "metrics": {}}
        return taken.model_copy(update=spoilt if late else {})


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_fail_by_chance_cost_no_candidate(seed: int) -> None:
    costs = {f"c{number:02}": 1.0 if number < 11 else 1.3 for number in range(16)}
    found = Flaky(costs, noise=0.04, seed=seed).search(Bayes())
    assert found.unmeasured == {}
    assert (found.before, found.after) == ("c10", "c11")


class Asking(Bayes):
    """Wants new servers of both ends, whatever it has seen."""

    def next_step(self, question: Question, history: History, pending: Pending = ()) -> Wanted:
        return Wanted(candidates=question.line[:2], why="to be sure", remaining=0, fresh=True)


@pytest.mark.parametrize(
    ("search", "starts"),
    [
        (Bayes(), "afforded"),
        (Asking(), "fresh"),
        (Rounds.of(3), "kept"),
        (Rounds.of(3, keeps=False), "afforded"),
    ],
)
def test_a_search_s_turns_have_new_servers(search: Search, starts: Starts) -> None:
    """A measurement's samples are of one server; to tell candidates apart takes several starts."""
    step = advance(QUESTION, search, History(), [])
    assert isinstance(step, Measure)
    assert step.starts == starts
    turn = turn_of("c", step, workload=WORKLOAD, way="duet", machine="m")
    assert turn.starts == starts
    assert ("starts" in turn.model_dump(mode="json")) is (starts != "kept")
    assert Turn.model_validate_json(turn.model_dump_json()) == turn


def test_only_whole_attempts_count() -> None:
    turns = [
        turn(0, TurnState.GIVEN_UP, "a", "b"),
        turn(0, TurnState.DONE, "a", "b", attempt=2),
        turn(1, TurnState.PLANNED, "a", "b"),
        turn(2, TurnState.FAILED, "c").ended(TurnState.FAILED, {"c": "it is broken"}),
    ]
    samples = [
        sample_of("a", 1.0, 0, id="late"),
        *(sample_of(name, 1.0, 0, attempt=2) for name in "ab"),
        sample_of("a", 1.0, 1, id="half"),
    ]
    history = history_of(samples, turns, {"h": "no package"}, {})
    assert {name: [s.attempt for s in group] for name, group in history.samples.items()} == {
        "a": [2], "b": [2],
    }  # fmt: skip
    assert history.unmeasurable == {"c": "it is broken", "h": "no package"}


@pytest.mark.parametrize(("quiet", "ends"), [(None, True), (0, True), (3, False), (19, False)])
def test_disturbance_without_end(quiet: int | None, *, ends: bool) -> None:
    spoilt = {"invalid": ("the load did not finish",), "disturbed": ("paused for 9 s",)}
    samples = [sample_of("a", 1.0, number, **spoilt) for number in range(21)]
    if quiet is not None:
        samples[-1 - quiet if quiet else 0] = sample_of("a", 1.0, 0)
    if ends:
        with pytest.raises(InconclusiveError, match="paused for 9 s"):
            refuse_endless_disturbance(samples)
    else:
        refuse_endless_disturbance(samples)


def test_disturbance_is_looked_at_per_machine() -> None:
    """A quiet machine's runs between them do not hide that another one is always disturbed."""
    spoilt = {"invalid": ("the load did not finish",), "disturbed": ("paused for 9 s",)}
    noisy, quiet = Machine(id="noisy"), Machine(id="quiet")
    pairs = [
        (
            sample_of("a", 1.0, number, id=f"q{number}", machine=quiet),
            sample_of("a", 1.0, number, id=f"n{number}", machine=noisy, **spoilt),
        )
        for number in range(20)
    ]
    samples = [each for pair in pairs for each in pair]
    refuse_endless_disturbance(samples[:-2])
    refuse_endless_disturbance([*samples, samples[0]])  # the last one is the quiet machine's
    with pytest.raises(InconclusiveError, match="the last 20 runs"):
        refuse_endless_disturbance(samples)


@pytest.mark.parametrize(("calm", "ends"), [(1.0, True), (0.6, True), (0.4, False), (0.0, False)])
def test_a_candidate_whose_runs_alone_are_disturbed_is_left_out(calm: float, *, ends: bool) -> None:
    """Its load may disturb itself; what disturbs the machine disturbs the others' runs too."""
    spoilt = {"invalid": ("the load did not finish",), "disturbed": ("paused for 9 s",)}
    samples = [
        sample_of(name, 1.0, number, **(spoilt if name == "a" or number >= calm * 20 else {}))
        for number in range(20)
        for name in "ab"
    ]
    why = History.of_samples(samples).why_not("a")
    assert (why is not None) is ends
    assert "paused for 9 s" in (why or "paused for 9 s")
    assert History.of_samples(samples[:-2]).why_not("a") is None
    assert History.of_samples(samples).why_not("b") is None


def test_only_the_turns_of_named_machines_are_settled(tmp_path: Path) -> None:
    """A living machine goes on with its own."""
    mine, other = (
        turn(number, TurnState.PLANNED, "a", "b").model_copy(update={"machine": machine})
        for number, machine in enumerate(("mine", "other"))
    )
    with Store.open(tmp_path / "results.db") as store:
        for each in (mine, other):
            store.put(each)
        assert store.settle_turns("c", {"mine"}) == 1
        assert store.settle_turns("c", {"mine"}) == 0
        states = {turn.id: turn.state for turn in store.turns(mine.campaign_id)}
        assert states == {mine.id: TurnState.GIVEN_UP, other.id: TurnState.PLANNED}
        assert store.turn("unknown") is None


def test_a_turn_that_is_taken_twice_is_stored_once(tmp_path: Path) -> None:
    question = Question(series_id="s", line=("c", "d"), workload_id="w", settings_id="default")
    with Store.open(tmp_path / "results.db") as store, leased(store, "key", "w") as lease:
        campaign = CampaignOrder(
            question=question,
            workload=WORKLOAD,
            search=Rounds.of(1),
            lab=WorldBenches(STEP),
            store=store,
        ).run(RecordingObserver())
        before = (store.turns(campaign.id), store.samples())
        taker = TurnTaker(
            lab=WorldBenches(World({"c": 7.0, "d": 7.0})),  # a second sample is never the same
            record=CampaignState.of(campaign, store, lease),
            listener=RecordingObserver(), ends={}, needs_all=True,
        )  # fmt: skip
        taker.take(before[0][0].ended(TurnState.PLANNED))
        assert (store.turns(campaign.id), store.samples()) == before
        assert len(before[1]) == 2


class Killed(BaseException):
    """As a kill it passes every handler of errors."""


class KilledAnywhere(RuleBasedStateMachine):
    """One question, asked again and again by processes that are killed."""

    @initialize(search=st.sampled_from([Rounds.of(4), Bayes(budget=Budget(runs=9))]))
    def begin(self, search: Search) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.search = search
        self.store = Store.open(Path(self.folder.name) / "results.db")
        with Store.open(Path(self.folder.name) / "whole.db") as whole:
            self.answer = self.ask(whole)
            self.whole = self.measured(whole)

    def ask(self, store: Store) -> dict[str, Any]:
        """The answer without the ids of samples, which follow from the campaign's."""
        line = LINE[2:5]
        question = Question(series_id="s", line=line, workload_id="w", settings_id="default")
        world = WorldBenches(World({name: 1.0 if name < "d" else 1.4 for name in line}))
        world.refuses = () if isinstance(self.search, Rounds) else ("d",)
        found = (
            CampaignOrder(
                question=question, workload=WORKLOAD, search=self.search, lab=world, store=store
            )
            .run(RecordingObserver())
            .boundary
        )
        assert found is not None
        return found.model_dump(exclude={"verdicts"})

    def measured(self, store: Store) -> list[tuple[int, str]]:
        (campaign,) = store.campaigns()
        taken = store.samples(campaign_id=campaign.id)
        return sorted((each.turn, each.candidate_id) for each in taken)

    @rule(writes=st.integers(0, 6), after=st.booleans())
    def killed(self, writes: int, *, after: bool) -> None:
        """At that write, before it is done or right after it; a finished one is not asked again."""
        if any(each.finished_at for each in self.store.campaigns()):
            return
        before = len(self.store.samples())
        left = writes

        def dying(write: Callable[[Any], bool]) -> Callable[[Any], bool]:
            def put(value: Any) -> bool:
                nonlocal left
                left -= 1
                if left < 0 and not after:
                    raise Killed
                done = write(value)
                if left < 0:
                    raise Killed
                return done

            return put

        put = self.store.put
        self.store.put = dying(put)  # type: ignore[method-assign]
        try:
            self.ask(self.store)
        except Killed:
            pass
        finally:
            self.store.put = put  # type: ignore[method-assign]
        assert len(self.store.samples()) >= before - len(LINE[2:5])  # at most the turn under way

    @invariant()
    def every_turn_is_there_once(self) -> None:
        for campaign in self.store.campaigns():
            turns = self.store.turns(campaign.id)
            done = [each.number for each in turns if each.state is TurnState.DONE]
            assert len(done) == len(set(done))
            assert sum(each.state is TurnState.PLANNED for each in turns) <= 1

    def teardown(self) -> None:
        if not any(each.finished_at for each in self.store.campaigns()):
            assert self.ask(self.store) == self.answer
        assert self.measured(self.store) == self.whole
        self.store.close()
        self.folder.cleanup()


TestKilledAnywhere = KilledAnywhere.TestCase
TestKilledAnywhere.settings = settings(max_examples=3, stateful_step_count=4, deadline=None)
