"""The levels among which the posterior weighs. Core pure logic, no I/O.

Only levels near something that was measured can matter, so the lattice has points there and
nowhere else: a step of 100 times costs no more of them than one of 5 %. Close to a measured
middle they are as fine as the noise; further away, as far as builds may scatter, they are coarse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats, Ints

FINENESS = 2.5  # lattice points per standard error of a candidate
REACH = 12  # points on each side of a candidate's middle
FAR = 3.0  # times the scatter of builds, in coarse points
COARSE = 2.0  # of these per scatter
NEAR = 2.0  # times smaller or larger than expected
MOST = 300  # points in all
SPREAD = np.exp(np.linspace(-1.1, 1.1, 7))  # noises around the estimated one
LOUDEST = 2.0  # a log
FAR_RUNS = 3.0  # robust deviations: further away a run says nothing of the noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """Levels are whole multiples of ``width``; ``cells`` is what each of them stands for."""

    width: float
    ticks: Ints
    cells: Floats

    @property
    def levels(self) -> Floats:
        levels: Floats = self.ticks * np.float64(self.width)
        return levels

    @cached_property
    def bounds(self) -> tuple[Floats, Floats]:
        """Between any two levels: logs of the least and the largest difference of their cells."""
        apart = np.abs(np.subtract.outer(self.ticks, self.ticks)) * self.width
        half = self.width / 2
        return np.log(np.maximum(apart - half, TINY)), np.log(apart + half)

    def shares_below(self, size: float) -> Floats:
        """Return the part of the differences of two levels that is smaller than this (a log)."""
        low, high = self.bounds
        return np.clip((math.log(size) - low) / (high - low), 0.0, 1.0)

    @cached_property
    def differences(self) -> tuple[Ints, Ints]:
        """By how many ticks two levels differ, ascending, and for each two which of these it is."""
        apart = np.subtract.outer(-self.ticks, -self.ticks)
        ticks, place = np.unique(apart, return_inverse=True)
        return ticks, place.ravel().astype(np.int64)


def lattice(middles: Floats, errors: Floats, belief: Belief) -> Lattice:
    """Return one around these middles, each of which has an error of its own."""
    width = float(errors.min()) / FINENESS
    far = FAR * max(builds.size for builds in belief.scatters)
    parts = [builds.width for builds in belief.scatters if builds.layouts]
    part = min(parts, default=max(builds.width for builds in belief.scatters))
    ticks, coarse = _ticks(middles, errors, width, far, part)
    while len(ticks) > MOST:
        width *= 1.5
        ticks, coarse = _ticks(middles, errors, width, far, part)
    apart = np.minimum(np.diff(ticks), coarse).astype(np.float64)
    cells = (np.append(apart, 1.0) + np.insert(apart, 0, 1.0)) / 2
    return Lattice(width=width, ticks=ticks, cells=cells)


def step_priors(grid: Lattice, noise: float, belief: Belief) -> Floats:
    """Return (11), the chance that a step leads from one level to another's cell of one tick.

    For each scatter of builds. Alike on a log scale, from what is too small to be seen or to be
    more than builds differ by.
    """
    below, above = grid.bounds
    # a step far below the noise could be told from none by hundreds of runs only
    least = belief.least_step(noise)
    lows = [max(least, belief.least_in_scatter * builds.size) for builds in belief.scatters]
    # what was measured is possible: a count may begin at nothing
    most = max(belief.most_log, float(grid.levels[-1] - grid.levels[0]))
    shares = np.stack([_log_uniform(below, above, low, max(most, 2 * low)) for low in lows])
    if belief.expected_log is not None:
        near = belief.expected_log / NEAR, belief.expected_log * NEAR
        shares = (shares + _log_uniform(below, above, *near)) / 2
    return shares


def _log_uniform(below: Floats, above: Floats, low: float, high: float) -> Floats:
    """Return the chance of a size between these two (logs), in one of both directions."""
    log_low, log_high = math.log(low), math.log(high)
    inside = np.clip(above, log_low, log_high) - np.clip(below, log_low, log_high)
    chance: Floats = inside / (2 * (log_high - log_low))
    return chance


def _ticks(
    middles: Floats, errors: Floats, width: float, far: float, part: float
) -> tuple[Ints, int]:
    """The points, and how far apart the coarse ones are; these go as far as builds may lie."""
    centres = np.rint(middles / width)[:, None]
    strides = np.maximum(1, np.rint(errors / FINENESS / width))[:, None]
    # on common points, so that those of several candidates coincide
    fine = strides * (np.rint(centres / strides) + np.arange(-REACH, REACH + 1))
    coarse = max(1, round(part / COARSE / width))
    side = math.ceil(far / width / coarse)
    beyond = coarse * (np.rint(centres / coarse) + np.arange(-side, side + 1))
    coarse = max(coarse, int(strides.max()))
    ticks = (
        fine.ravel() if side * coarse <= REACH else np.concatenate([fine.ravel(), beyond.ravel()])
    )
    return np.unique(ticks).astype(np.int64), coarse


def noise_estimate(runs: Evidence, belief: Belief) -> float:
    """Return the likeliest size, so that the lattice lies well; its weight is judged later.

    It is the mode of the prior times the likelihood of what runs of one candidate differ by.
    """
    middles = runs.middles
    deviations = np.abs(runs.values - middles[runs.owner]) / runs.scales
    steps = np.where(runs.open_ended, 0.0, runs.below + runs.above) / runs.scales
    freedom = runs.freedom
    if not freedom:
        return belief.noise
    moved = deviations[deviations > 0]
    usual = 1.5 * float(np.median(moved)) if len(moved) else 0.0
    square = float(np.sum(np.minimum(deviations, FAR_RUNS * max(belief.least_noise, usual)) ** 2))
    square += freedom * float(np.mean(steps**2)) / 12  # values that are read alike need not be
    sizes = np.geomspace(belief.least_noise, max(LOUDEST, belief.noise), 120)
    prior = np.array([belief.log_noise_prior(float(size)) for size in sizes])
    fit = prior - freedom * np.log(sizes) - square / (2 * sizes**2)
    return float(sizes[np.argmax(fit)])


def noises_around(noise: float, belief: Belief, runs: Evidence) -> tuple[Floats, Floats]:
    """Return sizes of noise with the log of their prior, (2).

    A run that the speed of its turn explains fits with any noise, and best with the least: that is
    taken off in advance.
    """
    noises = np.maximum(belief.least_noise, noise * SPREAD)
    prior = np.array([belief.log_noise_prior(float(size)) for size in noises])
    return noises, prior + (runs.repeated - runs.freedom) * np.log(noises)
