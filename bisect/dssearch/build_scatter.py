"""The scatter of builds of one source, and a step between two sources beyond that. Pure.

The model is one-way with a random effect of the build: run j of build i has the log cost
``m + b_i + e_ij``; ``b_i`` varies by the scatter of builds, ``e_ij`` by the noise of a run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pydantic import Field
from scipy.special import chdtri, fdtri, stdtrit

from dsharness.errors import InconclusiveError
from dsharness.model import Value

SURE = 0.9  # of the scatter's interval
LEAST_BUILDS = 2  # of one source; and at least so many runs of each
SEVERAL = 5.0  # a step below so many times the scatter needs several builds
SMALL = math.log(1.25)  # and one below this, where the scatter is not known: layouts do so much
BUILDS = 3  # of each side, if so
PILOT_RUNS, MOST_RUNS = 5, 40  # of each build
FINE = 4.0  # the mean of a build's runs is known to this part of the step

Groups = Sequence[Sequence[float]]  # the logs of the runs, by build


class BuildScatter(Value):
    """Standard deviations of logs, as per cent."""

    scatter_pct: float = Field(description="by how much builds of one source differ")
    interval_pct: tuple[float, float]
    noise_pct: float = Field(description="by how much runs of one build differ")
    builds: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class PooledStep:
    """A difference of two sources as a log, each measured with several builds."""

    size: float
    low: float
    high: float
    builds: int  # of each side
    runs: int

    @property
    def differs(self) -> bool:
        return self.low > 0 or self.high < 0

    def allows(self, size: float) -> bool:
        return self.low <= size <= self.high


def build_scatter(groups: Groups) -> BuildScatter:
    """Return the scatter by analysis of variance, with the interval of Tukey and Williams.

    Numbers of runs may differ: builds count equally, by their means (Thomas and Hultquist).
    """
    _refuse_few(groups)
    noise, freedom = _within(groups)
    runs = len(groups) / sum(1 / len(group) for group in groups)  # the harmonic mean
    between = runs * float(np.var([np.mean(group) for group in groups], ddof=1))
    of_builds = len(groups) - 1
    tail = (1 - SURE) / 2

    def bound(part: float) -> float:
        """Return the variance of builds below which it lies with this chance, at least."""
        excess = between - noise * float(fdtri(of_builds, freedom, 1 - part))
        return max(0.0, of_builds * excess / (runs * float(chdtri(of_builds, part))))

    return BuildScatter(
        scatter_pct=pct_of(math.sqrt(max(0.0, (between - noise) / runs))),
        interval_pct=(pct_of(math.sqrt(bound(tail))), pct_of(math.sqrt(bound(1 - tail)))),
        noise_pct=pct_of(math.sqrt(noise)),
        builds=len(groups),
        runs=sum(map(len, groups)),
    )


def pooled_step(before: Groups, after: Groups, level: float) -> PooledStep:
    """Return how much more ``after`` costs: the error is that of the means of builds.

    These differ by the scatter of builds and by what is left of the noise, so both are in it.
    """
    sides = (before, after)
    for side in sides:
        _refuse_few(side)
    means = [np.array([np.mean(build) for build in side]) for side in sides]
    freedom = sum(len(side) - 1 for side in sides)
    common = sum(float(((side - side.mean()) ** 2).sum()) for side in means) / freedom
    error = math.sqrt(common * sum(1 / len(side) for side in sides))
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    size = float(means[1].mean() - means[0].mean())
    return PooledStep(
        size=size,
        low=size - half,
        high=size + half,
        builds=min(map(len, sides)),
        runs=sum(len(build) for side in sides for build in side),
    )


def runs_each(groups: Groups, step: float) -> int:
    """How many runs of each build the noise asks for; what the means say has no part in it."""
    _refuse_few(groups)
    noise, _ = _within(groups)
    runs = math.ceil(noise / (step / FINE) ** 2) if step else MOST_RUNS
    return min(max(runs, PILOT_RUNS), MOST_RUNS)


def needs_several(step: float, scatter: float | None) -> bool:
    """Whether one build of each side could mislead about a step; logs, None if it is not known."""
    return abs(step) < (SMALL if scatter is None else SEVERAL * scatter)


def _within(groups: Groups) -> tuple[float, int]:
    """Return the variance of runs of one build, and its degrees of freedom."""
    freedom = sum(len(group) - 1 for group in groups)
    return sum(float(np.var(group)) * len(group) for group in groups) / freedom, freedom


def _refuse_few(groups: Groups) -> None:
    if len(groups) < LEAST_BUILDS or min(map(len, groups)) < LEAST_BUILDS:
        counts = ", ".join(str(len(group)) for group in groups) or "none"
        raise InconclusiveError(
            f"builds cannot be compared: usable runs of each build: {counts}",
            hint="two builds with two usable runs each are the least",
        )


def pct_of(log: float) -> float:
    """Return a difference of logs in per cent, as it is shown."""
    return round(100 * math.expm1(log), 2)
