"""The machine that runs a world's candidates, and counts what that costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from dsharness.model import Machine as MachineId
from dssearch.forecast import MACHINE, SimulatedRun
from searchbench.kinds import Noise
from searchbench.worlds import NO_COUNT, World

WANDER = 0.15  # on both sides: 30 % in all
PERIOD = 120  # runs
MOST_RUNS = 3000
SLOW_SHARE, SLOW_BY = 0.1, 3.0  # bimodal: so many runs are slower by so many sigmas
MODE_SHARE, MODE_BY = 0.3, math.log(1.25)  # slow runs: so many by so much, whatever the noise
SECOND = MachineId(id="made up, faster")
SECOND_SPEED, SECOND_CV = math.log(1.7), 0.08
DAY_RUNS, DAY = 30, 0.06
DRIFT = 0.001  # each run
NIGHT_RUNS = 12 * 18  # of twelve series of a watch
TURN_WALK = 0.03
STOLEN_SHARE, STOLEN_PCT, STOLEN_BY = 0.2, 20.0, 0.2
SLOW_STARTS = 0.3  # of all starts of a server
SPELL = 3  # runs that fail one after the other, in the mean
LEAST_DONE = 0.5  # of its operations, when a run hangs: what it costs at least
COUNTED = 100  # operations of a run whose calls are counted
STRAYS = 3.0  # calls of a run that are not its operations'
# streams of chance of one seed; the world has others
COSTS, RATES, SPEEDS, STEALS, BEFORE, STARTED, FAILED, COUNTS = 1, 2, 4, 5, 6, 13, 14, 15


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What a metric's values are in its own unit, and in which steps they are read."""

    low: float  # of the first candidate, drawn between these
    high: float
    step: float = 0.0

    def read(self, value: float) -> float:
        """The middle of its step."""
        return self.step * (math.floor(value / self.step) + 0.5) if self.step else value


SCALES = {
    "start-time": Scale(low=0.5, high=3.0, step=0.1),  # polled: s
    "start-cpu": Scale(low=0.08, high=0.6, step=0.01),  # of the kernel's ticks: s
    "instructions": Scale(low=1e5, high=1e6),
}
USUAL_SCALE = Scale(low=1.0, high=1.0)


class Spent(Exception):  # noqa: N818 - no error: the search had its chance
    """A search that is still undecided after so many runs is called off."""


class Machine:
    """Every search gets one of its own; the runs of a candidate are the same for all of them.

    Cost and rate have the level of the build in common, the machine's speed, and that a run is a
    slow one. The noise of each is its own.
    """

    def __init__(
        self, world: World, most_runs: int = MOST_RUNS, speed_seed: int | None = None
    ) -> None:
        self.world = world
        self.speed_seed = world.seed if speed_seed is None else speed_seed
        self.most_runs = most_runs
        self.runs = 0
        self.built: set[int] = set()  # with those that failed: they were paid for too
        self._tries = 0  # with those that did not build
        self._failing: dict[int, bool] = {}
        self._chances: dict[tuple[int, int], Generator] = {}

    @property
    def builds(self) -> int:
        return len(self.built)

    def run(self, candidate: int) -> float | None:
        """The log of the cost alone; each run is a turn of its own."""
        run = self.measure(candidate, self._tries)
        return None if run is None else run.cost

    def measure(self, candidate: int, turn: int) -> SimulatedRun | None:
        """None when the candidate cannot be built."""
        self._tries += 1
        if self._tries > self.most_runs:
            raise Spent
        world = self.world
        self.built.add(candidate)
        if candidate in world.broken:
            return None
        self.runs += 1
        second = world.kind.second_machine and turn % 2 == 1
        slow, speed = (
            self._slow(candidate) + self._slow_start(candidate, turn),
            self._speed(candidate, turn),
        )
        shared = world.built(candidate) + speed + slow - SECOND_SPEED * second
        sigma = SECOND_CV if second else world.sigma
        noise = sigma * unit_noise(self._chance(COSTS, candidate), world.kind.noise)
        steal = self._chance(STEALS, candidate)
        stolen = world.kind.stolen and steal.random() < STOLEN_SHARE
        cost = shared + noise + stolen * STOLEN_BY * float(steal.normal())
        bound = self._bound(candidate, cost, speed)
        return SimulatedRun(
            cost=cost,
            rate=self._rate_noise(candidate) - shared,
            machine=SECOND if second else MACHINE,
            session=self._day if world.kind.sessions else 0,
            steal_pct=STOLEN_PCT * stolen,
            start=0 if world.kind.one_start else 1 + turn,
            value=self._value(candidate, cost),
            quantum=self._scale.step,
            failed="" if bound is None else "the load did not finish",
            at_least=bound,
        )

    @property
    def _scale(self) -> Scale:
        return SCALES.get(self.world.kind.metric, USUAL_SCALE)

    def _bound(self, candidate: int, cost: float, speed: float) -> float | None:
        """What a run costs at least whose time was up; None where it ended."""
        limit = self.world.limit
        if limit is not None and cost - speed > limit:
            return limit + speed
        if self._fails(candidate):
            return cost + math.log(self._chance(FAILED, candidate).uniform(LEAST_DONE, 1.0))
        return None

    def _chance(self, stream: int, candidate: int) -> Generator:
        key = (stream, candidate)
        if key not in self._chances:
            self._chances[key] = np.random.default_rng([self.world.seed, stream, candidate])
        return self._chances[key]

    def _slow(self, candidate: int) -> float:
        if not self.world.kind.slow_runs:
            return 0.0
        return MODE_BY * (self._chance(COSTS, candidate).random() < MODE_SHARE)

    def _slow_start(self, candidate: int, turn: int) -> float:
        if not self.world.start:
            return 0.0
        start = (candidate,) if self.world.kind.one_start else (candidate, turn)
        chance = np.random.default_rng([self.world.seed, STARTED, *start])
        return self.world.start * float(chance.random() < SLOW_STARTS)

    def _fails(self, candidate: int) -> bool:
        """In spells, whether a run fails follows from the one before."""
        fails = self.world.fails
        if fails is None or not fails[candidate]:
            return False
        share, chance = float(fails[candidate]), self._chance(FAILED, candidate).random()
        if self.world.kind.spells:
            stays = 1 - 1 / SPELL
            share = stays if self._failing.get(candidate) else share / (1 - share) / SPELL
            self._failing[candidate] = chance < share
        return bool(chance < share)

    def _value(self, candidate: int, cost: float) -> float | None:
        """In the unit of a metric that is not the cost."""
        kind = self.world.kind
        if kind.counts is not None:
            level = max(NO_COUNT, kind.counts[0]) * math.exp(float(self.world.levels[candidate]))
            strays = abs(STRAYS * float(self._chance(COUNTS, candidate).normal()))
            return (round(COUNTED * level) + round(strays)) / COUNTED
        if kind.metric not in SCALES:
            return None
        chance = np.random.default_rng([self.world.seed, COUNTS])
        first = float(chance.uniform(self._scale.low, self._scale.high))
        return self._scale.read(first * math.exp(cost))

    def _speed(self, candidate: int, turn: int) -> float:
        kind = self.world.kind
        before = kind.stored and candidate == 0
        speed = self._wave() if kind.wanders else 0.0
        if kind.sessions:
            day = (self.world.seed, BEFORE) if before else (*self._seeds, self._day)
            speed += DAY * float(np.random.default_rng(day).uniform(-1, 1))
        if kind.drifts:
            speed += DRIFT * (self.runs - NIGHT_RUNS * before)
        if kind.duets:
            steps = np.random.default_rng(self._seeds).normal(size=turn + 1)
            speed += TURN_WALK * float(steps.sum())
        return speed

    @property
    def _seeds(self) -> tuple[int, int]:
        return self.speed_seed, SPEEDS

    @property
    def _day(self) -> int:
        return (self.runs - 1) // DAY_RUNS

    def _rate_noise(self, candidate: int) -> float:
        kind = self.world.kind
        if kind.noise is Noise.NIL:
            return 0.0
        noise = kind.rate_cv_pct / 100 * float(self._chance(RATES, candidate).normal())
        return noise + (self._wave() if kind.rate_wanders else 0.0)

    def _wave(self) -> float:
        return WANDER * math.sin(2 * math.pi * self.runs / PERIOD + self.world.phase)


def unit_noise(rng: Generator, noise: Noise) -> float:
    """One value of mean 0 and standard deviation 1."""
    match noise:
        case Noise.NIL:
            return 0.0
        case Noise.GAUSSIAN:
            return float(rng.normal())
        case Noise.HEAVY:
            return float(rng.standard_t(3)) / math.sqrt(3)
        case Noise.BIMODAL:
            slow = SLOW_BY if rng.random() < SLOW_SHARE else 0.0
            spread = math.sqrt(1 + SLOW_BY**2 * SLOW_SHARE * (1 - SLOW_SHARE))
            return (float(rng.normal()) + slow - SLOW_BY * SLOW_SHARE) / spread
