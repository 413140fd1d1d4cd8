"""The machine that runs a world's candidates, and counts what that costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from benchmarks.search.worlds import Noise, World
from dsbisect.search.simulation import SimulatedRun

WANDER = 0.15  # on both sides: 30 % in all
PERIOD = 120  # runs
MOST_RUNS = 3000
SLOW_SHARE, SLOW_BY = 0.1, 3.0  # bimodal: so many runs are slower by so many sigmas


class Spent(Exception):  # noqa: N818 - no error: the search had its chance
    """A search that is still undecided after so many runs is called off."""


class Machine:
    """Every search gets one of its own, with the same noise in the same order."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.runs = 0
        self.built: set[int] = set()  # with those that failed: they were paid for too
        self._tries = 0  # with those that did not build
        self._rng = np.random.default_rng([world.seed, 1])

    @property
    def builds(self) -> int:
        return len(self.built)

    def run(self, at: int) -> float | None:
        """The log of the cost of one run; None when the candidate cannot be built."""
        self._tries += 1
        if self._tries > MOST_RUNS:
            raise Spent
        world = self.world
        self.built.add(at)
        if at in world.broken:
            return None
        self.runs += 1
        noise = world.sigma * unit_noise(self._rng, world.kind.noise)
        return float(world.levels[at]) + noise + self._speed()

    def measure(self, at: int, _turn: int) -> SimulatedRun | None:
        """Cost and rate of one run; None when the candidate cannot be built."""
        cost = self.run(at)
        return None if cost is None else SimulatedRun(cost=cost, rate=-cost)

    def _speed(self) -> float:
        if not self.world.kind.wanders:
            return 0.0
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
