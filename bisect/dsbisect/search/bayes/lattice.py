"""The levels and noises among which the posterior weighs. Core pure logic, no I/O.

Only levels near something that was measured can matter, so the lattice has points there and
nowhere else: a step of 100 times costs no more of them than one of 5 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.prior import Belief
from dsbisect.search.bayes.track import Floats, Ints

FINENESS = 3  # lattice points per standard deviation of the noise
REACH = 11  # points on each side of a candidate's middle
MOST = 300  # points in all
SPREAD = np.exp(np.linspace(-1.1, 1.1, 7))  # noises around the estimated one
PRIOR_SAMPLES = 2.0  # the prior noise counts as this many


@dataclass(frozen=True, kw_only=True, eq=False)
class Lattice:
    """Levels are whole multiples of ``width``; each way of being noisy has a prior."""

    width: float
    noise: float  # as it looks before anything is weighed
    ticks: Ints
    noises: Floats
    tails: Floats
    log_prior: Floats

    @property
    def levels(self) -> Floats:
        levels: Floats = self.ticks * np.float64(self.width)
        return levels

    def with_shifts(self, log_weights: Floats) -> Lattice:
        """Every way of being noisy with each of several shifts."""
        count = len(log_weights)
        return replace(
            self,
            noises=np.tile(self.noises, count),
            tails=np.tile(self.tails, count),
            log_prior=np.tile(self.log_prior, count) + np.repeat(log_weights, len(self.log_prior)),
        )

    def only(self, kept: Ints) -> Lattice:
        """Some of the ways of being noisy."""
        return replace(
            self,
            noises=self.noises[kept],
            tails=self.tails[kept],
            log_prior=self.log_prior[kept],
        )


def lattice(seen: Evidence, belief: Belief) -> Lattice:
    middles = seen.middles
    noise = _noise(seen, middles, belief)
    width = noise / FINENESS
    ticks = _ticks(middles, width)
    while len(ticks) > MOST:
        width *= 1.5
        ticks = _ticks(middles, width)
    noises = np.maximum(belief.least_noise, noise * SPREAD)
    log_prior = -0.5 * (np.log(noises / belief.noise) / belief.noise_doubt) ** 2
    grid = [
        (one, tail, p) for one, p in zip(noises, log_prior, strict=True) for tail in belief.tails
    ]
    return Lattice(
        width=width,
        noise=noise,
        ticks=ticks,
        noises=np.array([one for one, _, _ in grid]),
        tails=np.array([tail for _, tail, _ in grid]),
        log_prior=np.array([p for _, _, p in grid]),
    )


def step_prior(grid: Lattice, belief: Belief) -> Floats:
    """For two levels, the chance that a step leads from one to the other: alike on a log scale."""
    differences: Floats = np.abs(grid.ticks[:, None] - grid.ticks[None, :]) * grid.width
    # a step far below the noise could be told from none by hundreds of runs only
    low = max(belief.least_log, belief.least_in_noise * grid.noise)
    high = max(belief.most_log, 2 * low)

    def share(size: Floats) -> Floats:
        inside: Floats = np.log(np.clip(size, low, high) / low) / (2 * math.log(high / low))
        return inside

    half = grid.width / 2
    shares: Floats = share(differences + half) - share(np.maximum(differences - half, 0.0))
    return shares


def _ticks(middles: Floats, width: float) -> Ints:
    around = np.arange(-REACH, REACH + 1)
    return np.unique(np.rint(middles / width)[:, None] + around).astype(np.int64)


def _noise(seen: Evidence, middles: Floats, belief: Belief) -> float:
    """A robust guess, so that the lattice lies well; its weight is judged later."""
    rest = np.abs(seen.values - middles[seen.owner]) / seen.scales
    freedom = len(rest) - len(middles)
    if freedom <= 0:
        return belief.noise
    rest = np.minimum(rest, 3 * max(belief.least_noise, 1.5 * float(np.median(rest[rest > 0]))
                                    if np.any(rest > 0) else belief.least_noise))  # fmt: skip
    square = PRIOR_SAMPLES * belief.noise**2 + float(np.sum(rest**2))
    return max(belief.least_noise, math.sqrt(square / (PRIOR_SAMPLES + freedom)))
