"""Peers of the search, each by its own rule.

Some halve: plain bisection, a fixed number of runs each, and the rule of `asv find`.

Pinpoint's rule is ten runs of each change, neighbours compared by two rank tests. Neighbours that
differ are halved, those that are undecided get ten runs more. Below the low threshold they differ,
above the high one they are the same; the high one falls with the number of runs, so that a
difference of the wanted size is passed over in 1 % of the cases, until it meets the low one. Its
own tables come from permutations; here is the Gaussian approximation of the Mann-Whitney test,
within a few percent of them at ten to thirty runs.

Others turn values into good and bad by a threshold they are told.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import ks_2samp, mannwhitneyu, norm

from searchbench.findings import Finding, Said, step_at
from searchbench.kinds import Noise
from searchbench.machine import Machine
from searchbench.worlds import Floats, World

# Over d², as someone would choose who knew it: 95 % or more are right at n = 128.
RUNS_EACH = 40


def plain(world: World, machine: Machine) -> Finding:
    """One run each, against half-way between both ends."""
    return _halve(world.n, machine, 1)


def fixed(world: World, machine: Machine) -> Finding:
    """So many runs each that one decision is hardly ever wrong."""
    return _halve(world.n, machine, math.ceil(RUNS_EACH / world.d**2))


def asv_find(world: World, machine: Machine) -> Finding:
    """One sample each, kept; the half with the larger rise is searched."""
    values = {place: _value(machine, place, 1) for place in (0, world.n - 1)}
    low, high = 0, world.n - 1
    while high - low > 1:
        middle = (low + high) // 2
        values[middle] = _value(machine, middle, 1)
        if values[middle] - values[low] >= values[high] - values[middle]:
            high = middle
        else:
            low = middle
    return step_at(high)


def _halve(n: int, machine: Machine, runs: int) -> Finding:
    first, last = _value(machine, 0, runs), _value(machine, n - 1, runs)
    if first == last:
        return Finding(said=Said.NONE)
    threshold = (first + last) / 2
    low, high = 0, n - 1
    skipped: set[int] = set()
    while inner := _nearest(low, high, skipped):
        value = _tried(machine, inner, runs)
        if value is None:
            skipped.add(inner)
        elif (value > threshold) == (last > first):
            high = inner
        else:
            low = inner
    return step_at(*range(low + 1, high + 1))


def _nearest(low: int, high: int, skipped: set[int]) -> int:
    """The candidate nearest to the middle that may be built; 0 when none is left."""
    middle = (low + high) // 2
    untried = (place for place in range(low + 1, high) if place not in skipped)
    return (
        min(untried, key=lambda place: abs(place - middle), default=0)
        if skipped
        else (middle if low < middle < high else 0)
    )


def _value(machine: Machine, candidate: int, runs: int) -> float:
    value = _tried(machine, candidate, runs)
    if value is None:
        raise ValueError(f"candidate {candidate} must be buildable here")
    return value


def _tried(machine: Machine, candidate: int, runs: int) -> float | None:
    values = [machine.run(candidate) for _ in range(runs)]
    usable = [value for value in values if value is not None]
    return fmean(usable) if usable else None


LOW = 0.01
MORE_RUNS = 10
MISSED = 0.01
RANKS = math.sqrt(3 / math.pi)  # the efficiency of ranks compared with means
QUARTILES = 1.349  # between them, in standard deviations
DEFAULT_SIZE = 1.0  # quartile distances, when the size of the regression is unknown


@dataclass(kw_only=True)
class Job:
    """The runs of all changes that were looked at so far."""

    machine: Machine
    size: float  # to be noticed, in standard deviations
    runs: dict[int, list[float]] = field(default_factory=dict)
    verdicts: dict[tuple[int, int, int, int], float] = field(default_factory=dict)

    def add(self, candidate: int) -> None:
        values = (self.machine.run(candidate) for _ in range(MORE_RUNS))
        self.runs.setdefault(candidate, []).extend(value for value in values if value is not None)

    def chance(self, first: int, second: int) -> float:
        """The smaller p of both tests."""
        a, b = self.runs[first], self.runs[second]
        key = (first, second, len(a), len(b))
        if key not in self.verdicts:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # an exact p that is hard to get
                self.verdicts[key] = min(
                    float(mannwhitneyu(a, b).pvalue), float(ks_2samp(a, b).pvalue)
                )
        return self.verdicts[key]

    def high(self, first: int, second: int) -> float:
        count = (len(self.runs[first]) + len(self.runs[second])) // 2
        expected = self.size * RANKS * math.sqrt(count / 2)
        return float(2 * norm.sf(max(0.0, expected - norm.isf(MISSED))))

    def differ(self, first: int, second: int) -> bool:
        return self.chance(first, second) <= LOW

    def undecided(self, first: int, second: int) -> bool:
        return LOW < self.chance(first, second) <= self.high(first, second)


def by_default(world: World, machine: Machine) -> Finding:
    return _run(world, Job(machine=machine, size=DEFAULT_SIZE * QUARTILES))


def told_the_size(world: World, machine: Machine) -> Finding:
    return _run(world, Job(machine=machine, size=world.d))


def _run(world: World, job: Job) -> Finding:
    for end in (0, world.n - 1):
        job.add(end)
    while _explore(job):
        pass
    steps = [pair for pair in pairwise(sorted(job.runs)) if job.differ(*pair)]
    steps.sort(key=lambda pair: job.chance(*pair))
    if not steps:
        return Finding(said=Said.NONE)
    culprit, *other_steps = (after for _, after in steps)
    return Finding(said=Said.STEP, named=frozenset({culprit}), also=frozenset(other_steps))


def _explore(job: Job) -> bool:
    """One round; False when nothing is left to do."""
    pairs = list(pairwise(sorted(job.runs)))
    halved = [(a + b) // 2 for a, b in pairs if b - a > 1 and job.differ(a, b)]
    refined = [
        min(pair, key=lambda candidate: len(job.runs[candidate]))
        for pair in pairs
        if job.undecided(*pair)
    ]
    for place in (*refined, *halved):
        job.add(place)
    return bool(refined or halved)


LEVEL = 0.95
NO_CULPRIT = 0.3  # FACF: the chance at the start, the same as this project's own
LEAST_FLAKES = 1e-3


def facf(world: World, machine: Machine) -> Finding:
    """Flake Aware Culprit Finding, as published, with the true flake rates of both sides.

    Hypothesis k says that k is the first to fail; n says that none is. The next run halves
    their mass; it ends when one of them has the level.
    """
    good_fails, bad_fails = _flakes(world)
    chances = np.full(world.n + 1, (1 - NO_CULPRIT) / (world.n - 1))
    chances[0], chances[world.n] = 0.0, NO_CULPRIT
    if world.prior is not None:
        chances[1 : world.n] = (1 - NO_CULPRIT) * world.prior[1:] / world.prior[1:].sum()
    while chances.max() < LEVEL:
        below = np.cumsum(chances)[1 : world.n]
        candidate = 1 + int(np.argmin(np.abs(below - 0.5)))
        fails = _vote(world, machine, candidate)
        after, before = (bad_fails, good_fails) if fails else (1 - bad_fails, 1 - good_fails)
        chances[: candidate + 1] *= after
        chances[candidate + 1 :] *= before
        chances /= chances.sum()
    best = int(np.argmax(chances))
    return Finding(said=Said.NONE) if best == world.n else step_at(best)


def _usable(usable: NDArray[np.bool_], index: int, turn: int) -> int:
    if usable[index]:
        return index
    places = np.flatnonzero(usable)
    position = int(np.searchsorted(places, index))
    sides = places[max(0, position - 1) : position + 1]
    return int(sides[turn % len(sides)])


class _Bisector(Protocol):
    """What is used of git_bayesect."""

    def record(self, index: int, observation: bool | None) -> None: ...  # noqa: FBT001 - theirs

    def select(self) -> int: ...

    @property
    def distribution(self) -> Floats: ...


def git_bayesect(world: World, machine: Machine) -> Finding:
    """The published package itself; its index 0 is the newest candidate.

    Its oldest index says that all of the range fails, so naming it is taken for "none". It goes
    on asking for a candidate that was skipped; its nearest neighbours are run in its place, the
    newer and the older in turn.
    """
    newest = world.n - 1
    bisector = _bisector(world)
    usable = np.ones(world.n, dtype=np.bool_)
    while _highest(bisector) < LEVEL:
        index = _usable(usable, _asked(bisector), machine.runs)
        value = machine.run(newest - index)
        usable[index] = value is not None
        bisector.record(index, None if value is None else value > world.threshold)
    culprit = newest - int(np.argmax(bisector.distribution))
    return step_at(culprit) if culprit else Finding(said=Said.NONE)


def _highest(bisector: _Bisector) -> float:
    with np.errstate(divide="ignore"):  # the log of a prior of nothing, after a skip
        return float(bisector.distribution.max())


def _asked(bisector: _Bisector) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0, which it then drops
        return bisector.select()


def _bisector(world: World) -> _Bisector:
    # A dependency of the benchmark only: the tests import this module without it.
    from git_bayesect import Bisector  # noqa: PLC0415

    prior = np.ones(world.n) if world.prior is None else world.prior.copy()
    bisector: _Bisector = Bisector(prior[::-1].copy())
    return bisector


def _vote(world: World, machine: Machine, candidate: int) -> bool:
    value = machine.run(candidate)
    if value is None:
        raise ValueError(f"FACF is published for candidates that build, and {candidate} does not")
    return value > world.threshold


def _flakes(world: World) -> tuple[float, float]:
    """How often a good candidate fails, and how often a bad one."""
    wrong = 0.0 if world.kind.noise is Noise.NIL else float(ndtr(-world.d / 2))
    wrong = max(wrong, LEAST_FLAKES)
    return wrong, 1 - wrong
