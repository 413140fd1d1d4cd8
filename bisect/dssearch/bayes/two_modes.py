"""Noise of two modes: some runs are slower by a fixed factor. Core pure logic, no I/O.

Two modes are fitted by expectation maximisation: with a free level for each candidate, where that
is clearly better than one mode with any tails, else with one level for all. The latter is what
competes with any step: bisecting fits one to any row of single runs of which some are slow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.noise_shapes import Ways
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats

FREE = 10  # runs beyond the first of each candidate, for levels that are free
ROUNDS = 40
ENOUGH_NATS = 0.01  # a round that gains less is the last one
STARTS = (1.5, 3.0)  # times the spread: where the slow mode may lie
CLEAR_NATS = 4.0  # by which two modes must fit better
LEAST_JUMP = 2.0  # of the noise: closer modes are one
PRIOR = 0.3  # of two modes, once they are seen
UNSEEN = 0.01  # of two modes until then
REPEATED = 6  # runs beyond the first of each candidate: fewer cannot tell two modes from a step
MODES = math.log(2.0)  # they are less apart
CLEAR_JUMP = 30.0  # of the noise: so clear a step is not taken for slow runs
SIZES = np.array([0.7, 0.85, 1.0, 1.2, 1.5])
JUMPS = np.array([0.85, 1.0, 1.15])
NEARLY_GAUSSIAN = 30.0  # degrees of freedom


@dataclass(frozen=True, kw_only=True, eq=False)
class SlowMode:
    """(4): a share of the runs is slower by ``jump`` (a log); ``size`` is the noise of a mode."""

    share: float
    jump: float
    size: float
    levels: Floats  # of the candidates' other runs
    fit: float  # the log likelihood
    prior: float = PRIOR
    unusual: float = 0.0  # by how many nats such a quiet mode is less likely in advance

    def ways(self) -> Ways:
        """Sizes and jumps around the fitted ones."""
        sizes, jumps = (each.ravel() for each in np.meshgrid(self.size * SIZES, self.jump * JUMPS))
        same = np.ones(len(sizes))
        return Ways(
            sizes=sizes,
            tails=NEARLY_GAUSSIAN * same,
            slow=self.share * same,
            jump=jumps,
            kinds=np.zeros(len(sizes), dtype=np.int64),
            log_prior=np.full(len(sizes), math.log(self.prior / len(sizes)) - self.unusual),
        )


def slow_mode(seen: Evidence, belief: Belief) -> SlowMode | None:
    """None where too few runs were repeated, or no two modes fit."""
    repeated = len(seen.values) - len(seen.positions)
    if repeated >= FREE:
        found, one_mode = _best(seen, belief)
        if found.jump >= LEAST_JUMP * found.size and found.fit >= one_mode + CLEAR_NATS:
            return found
    if repeated >= REPEATED:
        alike = replace(seen, positions=seen.positions[:1], owner=np.zeros_like(seen.owner))
        found, _ = _best(alike, belief)
        if LEAST_JUMP * found.size <= found.jump < min(MODES, CLEAR_JUMP * found.size):
            return replace(found, prior=UNSEEN)
    return None


def _best(seen: Evidence, belief: Belief) -> tuple[SlowMode, float]:
    """With how well one mode fits."""
    rest = seen.values - seen.middles[seen.owner]
    spread = max(belief.least_noise, float(np.std(rest)))
    found = max(
        (_fitted(seen, start * spread, spread / 2, belief.least_noise) for start in STARTS),
        key=lambda each: each.fit,
    )
    # few runs may fall into two narrow groups by chance
    unusual = belief.log_noise_prior(spread) - belief.log_noise_prior(found.size)
    return replace(found, fit=found.fit - unusual, unusual=unusual), _one_mode(rest, spread)


def _fitted(seen: Evidence, jump: float, size: float, least_noise: float) -> SlowMode:
    values, owner, counts = seen.values, seen.owner, seen.counts
    levels = seen.middles - jump / 4
    share, fit = 0.3, -math.inf
    free = len(values) / max(1, len(values) - len(counts))
    for _ in range(ROUNDS):
        rest = values - levels[owner]
        fast, slow = _log_normal(rest, size), _log_normal(rest - jump, size)
        both = np.logaddexp(math.log1p(-share) + fast, math.log(share) + slow)
        before, fit = fit, float(both.sum())
        if abs(fit - before) < ENOUGH_NATS:
            break
        is_slow = np.exp(math.log(share) + slow - both)
        levels = np.bincount(owner, weights=values - is_slow * jump) / counts
        rest = values - levels[owner]
        jump = max(0.0, float(is_slow @ rest) / max(TINY, float(is_slow.sum())))
        share = float(np.clip(is_slow.mean(), 0.03, 0.8))
        square = (1 - is_slow) @ rest**2 + is_slow @ (rest - jump) ** 2
        size = max(least_noise, math.sqrt(float(square) / len(values) * free))
    return SlowMode(share=share, jump=jump, size=size, levels=levels, fit=fit)


def _one_mode(rest: Floats, spread: float) -> float:
    """The best fit of one mode, with any tails: Student's t with 4 degrees, or Gaussian."""
    sizes = spread * np.geomspace(0.3, 1.3, 12)[:, None]
    heavy = math.lgamma(2.5) - math.lgamma(2.0) - 0.5 * math.log(4 * math.pi)
    t4 = heavy - np.log(sizes) - 2.5 * np.log1p((rest / sizes) ** 2 / 4)
    return float(max(t4.sum(1).max(), _log_normal(rest, sizes).sum(1).max()))


def _log_normal(rest: Floats, size: Floats | float) -> Floats:
    found: Floats = -0.5 * (rest / size) ** 2 - np.log(size) - 0.5 * math.log(2 * math.pi)
    return found
