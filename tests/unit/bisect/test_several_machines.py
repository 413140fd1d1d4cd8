"""Samples of several machines in one search: each has an offset, and none is taken for a step."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import World, sample_of

from dsharness.measure.metrics import COST, RATE
from dsharness.model import Machine, Sample
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Beliefs, Certainty, believe
from dssearch.bayes.evidence import evidence
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import track
from dssearch.planner import TurnEnd
from dssearch.question import History, Measure, Question

NAMES = tuple(f"c{number}" for number in range(16))
FLAT = dict.fromkeys(NAMES, 1.0)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class TwoMachines(World):
    """A turn is measured on one of two; ``cost`` and ``rate`` say how much slower the second is."""

    cost: float = 1.1
    rate: float = 2.0
    one_side: float = 0.5  # chance that a turn goes to the machine that measures its side
    machine: str = "one"
    ahead_s: float = 0.0  # by which the second one's clock is wrong
    by_machine: dict[str, list[str]] = field(default_factory=dict)

    def turn(self, step: Measure) -> TurnEnd | None:
        chance = random.Random(f"{self.seed}/{step.turn}/machine")
        places = [NAMES.index(name) for name in step.candidates]
        second_side = sum(places) / len(places) >= len(NAMES) / 2
        usual = chance.random() < self.one_side
        self.machine = "two" if second_side == usual else "one"
        return super().turn(step)

    def sample(self, row: str, turn: int) -> Sample:
        taken = super().sample(row, turn)
        self.by_machine.setdefault(self.machine, []).append(row)
        second = self.machine == "two"
        cost, rate = (self.cost, self.rate) if second else (1.0, 1.0)
        metrics = {
            name: found.model_copy(
                update={"value": found.value * {"cost": cost, "rate": 1 / rate}.get(name, rate)}
            )
            for name, found in taken.metrics.items()
        }
        return taken.model_copy(
            update={
                "metrics": metrics,
                "machine": Machine(id=self.machine),
                "calibrator_us": 1000.0 * rate,
                "started_at": (
                    NOON + timedelta(seconds=10 * turn + second * self.ahead_s)
                ).isoformat(),
            }
        )


def stepped(at: int, size: float) -> Mapping[str, float]:
    return {name: size if place >= at else 1.0 for place, name in enumerate(NAMES)}


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize(("rate", "one_side", "seed"), [(1.3, 0.9, 0), (4.0, 1.0, 3)])
def test_machines_that_differ_are_not_a_step(rate: float, one_side: float, seed: int) -> None:
    """Also when one measured mostly one side."""
    world = TwoMachines(FLAT, noise=0.03, seed=seed, rate=rate, one_side=one_side)
    found = world.search(Bayes())
    assert not found.found, found.summary
    assert found.direction == "none", found.summary


@pytest.mark.parametrize("ahead_s", [3600.0, -3600.0])
def test_a_clock_that_is_an_hour_off_changes_nothing(ahead_s: float) -> None:
    """What looks like a pause of one machine is another machine's clock."""
    right, wrong = (
        TwoMachines(stepped(9, 1.3), noise=0.03, seed=2, ahead_s=ahead) for ahead in (0.0, ahead_s)
    )
    assert right.search(Bayes()) == wrong.search(Bayes())
    assert len(right.by_machine) == 2
    assert right.by_machine == wrong.by_machine


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rate", "cost", "one_side", "place", "size"),
    [
        (1.3, 1.1, 0.5, 5, 1.5),
        (1.3, 1.1, 1.0, 5, 1.5),
        (4.0, 1.1, 0.9, 11, 1.2),
        (4.0, 0.9, 0.5, 5, 1.2),
        (4.0, 0.9, 1.0, 5, 1.2),
    ],
)
def test_the_right_culprit_is_found(
    rate: float, cost: float, one_side: float, place: int, size: float
) -> None:
    seed = int(10 * one_side)
    world = TwoMachines(
        stepped(place, size), noise=0.03, seed=seed, rate=rate, cost=cost, one_side=one_side
    )
    found = world.search(Bayes())
    assert found.found, found.summary
    assert found.after == NAMES[place], found.summary


@dataclass
class Comes(World):
    """Turns before ``since`` are measured on one machine, all that follow on another."""

    since: int = 1

    def sample(self, row: str, turn: int) -> Sample:
        machine = Machine(id="one" if turn < self.since else "two")
        return super().sample(row, turn).model_copy(update={"machine": machine})


@pytest.mark.few(3)
@pytest.mark.parametrize("since", [1, 3, 4, 5])
def test_a_machine_that_takes_over_ends_the_search(since: int) -> None:
    """Its runs of one candidate alone say nothing: they would be asked for without end."""
    found = Comes(stepped(5, 1.4), since=since).search(Bayes(), most=30)
    assert found.after == "c5", found.summary


@dataclass
class Scattered(World):
    """Each turn is measured on a machine that chance chose; the last one takes what follows."""

    machines: tuple[str, ...] = ()

    def sample(self, row: str, turn: int) -> Sample:
        machine = Machine(id=self.machines[min(turn, len(self.machines) - 1)])
        return super().sample(row, turn).model_copy(update={"machine": machine})


@given(
    machines=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    place=st.integers(1, len(NAMES) - 1),
    seed=st.integers(0, 3),
)
def test_a_search_ends_whichever_machine_is_given_each_turn(
    machines: list[str], place: int, seed: int
) -> None:
    world = Scattered(stepped(place, 1.4), seed=seed, machines=tuple(machines))
    assert world.search(Bayes(), most=40).after == NAMES[place]


def one_by_one(
    machine_of: Mapping[str, str],
    runs: int,
    factor: float,
    seed: int = 1,
    costs: Mapping[str, float] = FLAT,
) -> History:
    chance = random.Random(seed)
    taken = []
    for turn in range(runs):
        for name, machine in machine_of.items():
            value = costs[name] * (factor if machine == "two" else 1.0)
            metrics = {"cost": COST.measured(value * chance.lognormvariate(0, 0.03))}
            of = {"metrics": metrics, "machine": Machine(id=machine)}
            taken.append(sample_of(name, 1.0, turn).model_copy(update=of))
    return History.of_samples(taken)


HALVES = {name: "one" if at < 8 else "two" for at, name in enumerate(NAMES)}
QUESTION = Question(series_id="s", line=NAMES, workload_id="w", settings_id="default")


def divided(seed: int, ties: int, costs: Mapping[str, float] = FLAT) -> Beliefs:
    """Each machine measured one half, and only the ends were measured on both."""
    apart = one_by_one(HALVES, 6, 1.1, seed, costs)
    both = one_by_one({"c0": "two", "c15": "one"}, ties, 1.1, seed + 1000, costs)
    history = History.of_samples(_all(apart, both))
    found = believe(QUESTION, history, track(NAMES, {}), Belief(), {})
    assert found is not None
    return found


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize("ties", [1, 4])
@pytest.mark.parametrize("seed", range(2))
def test_a_machine_that_measured_one_half_is_not_a_step(seed: int, ties: int) -> None:
    """However sure the figures of each half are: the offset is known from a few runs only."""
    found = divided(seed, ties)
    assert not found.settled(Certainty()), found.posterior.stepped.round(2)


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_a_step_within_a_half_is_seen_although_the_offset_is_in_doubt(seed: int) -> None:
    found = divided(seed, 1, stepped(4, 1.3))
    assert found.settled(Certainty())
    assert found.names(found.top) == ("c4",)


def test_an_offset_is_taken_out_where_candidates_tie_the_machines_together() -> None:
    apart = one_by_one(HALVES, 6, 1.5)
    both = one_by_one({"c0": "two", "c15": "one"}, 6, 1.5)
    seen = evidence(COST, History.of_samples(_all(apart, both)), track(NAMES, {}), 0, 15)
    assert seen is not None
    assert np.ptp(seen.middles) < 0.1
    assert 0 < seen.doubts.max() < 0.05


def test_a_machine_that_shares_no_candidate_says_nothing() -> None:
    """Otherwise its speed would be a step."""
    seen = evidence(COST, one_by_one(HALVES, 3, 1.5), track(NAMES, {}), 0, 15)
    assert seen is not None
    assert list(seen.positions) == list(range(8))


@pytest.mark.whole
def test_a_slow_machine_is_no_disturbance() -> None:
    """Its calibrator takes longer, and always does."""
    world = TwoMachines(stepped(5, 1.5), noise=0.02, rate=4.0)
    world.search(Bayes())
    seen = evidence(COST, History.of_samples(world.taken), track(NAMES, {}), 0, 15)
    assert seen is not None
    assert seen.burden.max() == 0


@pytest.mark.whole
def test_the_name_of_a_single_machine_changes_nothing() -> None:
    @dataclass
    class Renamed(World):
        def sample(self, row: str, turn: int) -> Sample:
            renamed = {"machine": Machine(id="another")}
            return super().sample(row, turn).model_copy(update=renamed)

    costs = stepped(5, 1.3)
    assert World(costs).search(Bayes()) == Renamed(costs).search(Bayes())


def _all(*histories: History) -> list[Sample]:
    return [s for history in histories for group in history.samples.values() for s in group]


@pytest.mark.whole
def test_the_rate_of_several_machines_is_a_witness_too() -> None:
    found = TwoMachines(stepped(5, 1.5), noise=0.03, rate=4.0, one_side=0.9).search(Bayes())
    assert found.witness in {"agrees", "cannot tell"}
    by_rate = TwoMachines(stepped(5, 1.5), noise=0.03, rate=4.0, one_side=0.9)
    assert by_rate.search(Bayes(), metric=RATE.name).after == "c5"
