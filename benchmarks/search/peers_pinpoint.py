"""Pinpoint's rule: ten runs of each change, neighbours compared by two rank tests.

Neighbours that differ are halved, those that are undecided get ten runs more. Below the low
threshold they differ, above the high one they are the same; the high one falls with the number
of runs, so that a difference of the wanted size is passed over in 1 % of the cases, until it
meets the low one. Its own tables come from permutations; here is the Gaussian approximation of
the Mann-Whitney test, within a few percent of them at ten to thirty runs.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from itertools import pairwise

from scipy.stats import ks_2samp, mannwhitneyu, norm

from benchmarks.search.findings import Finding, Said
from benchmarks.search.machine import Machine
from benchmarks.search.worlds import World

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

    def add(self, at: int) -> None:
        values = (self.machine.run(at) for _ in range(MORE_RUNS))
        self.runs.setdefault(at, []).extend(value for value in values if value is not None)

    def chance(self, one: int, other: int) -> float:
        """The smaller p of both tests."""
        a, b = self.runs[one], self.runs[other]
        key = (one, other, len(a), len(b))
        if key not in self.verdicts:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # an exact p that is hard to get
                self.verdicts[key] = min(
                    float(mannwhitneyu(a, b).pvalue), float(ks_2samp(a, b).pvalue)
                )
        return self.verdicts[key]

    def high(self, one: int, other: int) -> float:
        count = (len(self.runs[one]) + len(self.runs[other])) // 2
        expected = self.size * RANKS * math.sqrt(count / 2)
        return float(2 * norm.sf(max(0.0, expected - norm.isf(MISSED))))

    def differ(self, one: int, other: int) -> bool:
        return self.chance(one, other) <= LOW

    def undecided(self, one: int, other: int) -> bool:
        return LOW < self.chance(one, other) <= self.high(one, other)


def by_default(world: World, machine: Machine) -> Finding:
    return _run(world, Job(machine=machine, size=DEFAULT_SIZE * QUARTILES))


def told_the_size(world: World, machine: Machine) -> Finding:
    return _run(world, Job(machine=machine, size=world.d))


def _run(world: World, job: Job) -> Finding:
    for end in (0, world.n - 1):
        job.add(end)
    while _explore(job):
        pass
    found = [pair for pair in pairwise(sorted(job.runs)) if job.differ(*pair)]
    found.sort(key=lambda pair: job.chance(*pair))
    if not found:
        return Finding(said=Said.NONE)
    named, *others = (after for _, after in found)
    return Finding(said=Said.STEP, named=frozenset({named}), also=frozenset(others))


def _explore(job: Job) -> bool:
    """One round; False when nothing is left to do."""
    pairs = list(pairwise(sorted(job.runs)))
    halved = [(a + b) // 2 for a, b in pairs if b - a > 1 and job.differ(a, b)]
    refined = [
        min(pair, key=lambda at: len(job.runs[at])) for pair in pairs if job.undecided(*pair)
    ]
    for at in (*refined, *halved):
        job.add(at)
    return bool(refined or halved)
