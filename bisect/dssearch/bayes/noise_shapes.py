"""The ways in which runs may be noisy, among which the posterior weighs. Core pure logic, no I/O.

A way is a size, a shape (Student's t with some degrees of freedom, or two modes) and the scatter
of builds: how far the level of each build lies off that of its source, whatever its runs.

In two modes some runs are slower by a fixed factor. They are fitted by expectation maximisation:
with a free level for each candidate, where that is clearly better than one mode with any tails,
else with one level for all. The latter is what competes with any step: bisecting fits one to any
row of single runs of which some are slow.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.special import stdtr

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats, Ints, log_sum

REACH = 2.0  # a slow mode further away than this many sizes is clear of the fast one


@dataclass(frozen=True, kw_only=True, eq=False)
class Ways:
    """One entry for each way."""

    sizes: Floats
    tails: Floats  # degrees of freedom
    slow: Floats  # the share of runs in a slow mode
    jump: Floats  # by which those are slower
    kinds: Ints  # which scatter of builds
    log_prior: Floats

    def only(self, numbers: Ints) -> Ways:
        return Ways(**{field.name: getattr(self, field.name)[numbers] for field in fields(self)})

    def normalised(self) -> Ways:
        """Return them with priors that sum to 1."""
        return replace(self, log_prior=self.log_prior - log_sum(self.log_prior))

    def each_with(self, log_weights: Floats) -> Ways:
        """Return every way with each of several alternatives; the alternatives vary slowest."""
        count, ways = len(log_weights), len(self.sizes)
        ways_repeated = self.only(np.tile(np.arange(ways), count))
        return replace(
            ways_repeated, log_prior=ways_repeated.log_prior + np.repeat(log_weights, ways)
        )

    def each_scattered(self, log_weights: Floats) -> Ways:
        """Return every way with each scatter of builds."""
        kinds = np.repeat(np.arange(len(log_weights)), len(self.sizes))
        return replace(self.each_with(log_weights), kinds=kinds)

    def joined(self, more: Ways) -> Ways:
        return Ways(
            **{
                field.name: np.concatenate([getattr(self, field.name), getattr(more, field.name)])
                for field in fields(self)
            }
        )

    @property
    def variances(self) -> Floats:
        """Of one run, as far as it hides a level."""
        own = self.sizes**2 * (self.tails + 3) / (self.tails + 1)
        between = self.slow * (1 - self.slow) * np.minimum(self.jump, REACH * self.sizes) ** 2
        total: Floats = own + between
        return total

    def log_densities(self, distance: Floats, scales: Floats, groups: Ints) -> Iterator[Floats]:
        """Yield for each way the density f in (6), or (4), of each group of runs together.

        Runs are at a distance from their level, in their scales; ``groups`` is where each begins.
        """
        squares = distance**2
        starts = np.log(self.sizes)[:, None] + np.log(scales)[:, 0]
        middles = np.array([_log_middle(float(tail)) for tail in self.tails])[:, None]
        alone = np.add.reduceat(middles - starts, groups, axis=1)[:, :, None]
        falls, widths = (self.tails + 1) / 2, 1 / (self.tails * self.sizes**2)
        for way in range(len(self.sizes)):
            if self.slow[way] > 0:
                densities = self._log_two_modes(way, distance, scales)
                yield np.asarray(np.add.reduceat(densities, groups, axis=0), dtype=np.float64)
                continue
            # one log for all of a group, since logs take most of the time
            product = np.multiply.reduceat(1 + squares * widths[way], groups, axis=0)
            yield np.asarray(alone[way] - falls[way] * np.log(product), dtype=np.float64)

    def log_density(self, distance: Floats) -> Floats:
        """Return by way and level that of one run of the usual noise."""
        return np.stack([self._log_run(way, distance) for way in range(len(self.sizes))])

    def log_chances(self, low: Floats, high: Floats) -> Floats:
        """Return by way and level the log of the chance that a run lies between two distances."""
        size, tail, slow, jump = (
            column[:, None] for column in (self.sizes, self.tails, self.slow, self.jump)
        )
        fast = _between(low / size, high / size, tail)
        far = _between((low - jump) / size, (high - jump) / size, tail) if slow.any() else fast
        return np.log(np.maximum(TINY, (1 - slow) * fast + slow * far))

    def _log_run(self, way: int, distance: Floats) -> Floats:
        if self.slow[way] > 0:
            return self._log_two_modes(way, distance, np.ones(1))
        size = float(self.sizes[way])
        return _log_t(distance / size, float(self.tails[way])) - math.log(size)

    def _log_two_modes(self, way: int, distance: Floats, scales: Floats) -> Floats:
        size, tail, share = (float(column[way]) for column in (self.sizes, self.tails, self.slow))
        fast = _log_t(distance / size, tail)
        slow = _log_t((distance - self.jump[way] / scales) / size, tail)
        density: Floats = np.logaddexp(np.log1p(-share) + fast, np.log(share) + slow)
        return density - np.log(size * scales)


def _between(low: Floats, high: Floats, tail: Floats) -> Floats:
    """The chance of a t between two values; from the nearer end, so that small ones are exact."""
    flip = low > 0
    nearer, farther = np.where(flip, -high, low), np.where(flip, -low, high)
    chance: Floats = stdtr(tail, farther) - stdtr(tail, nearer)
    return chance


def _log_t(distance: Floats, tail: float) -> Floats:
    log_density: Floats = _log_middle(tail) - (tail + 1) / 2 * np.log1p(distance**2 / tail)
    return log_density


@functools.cache
def _log_middle(tail: float) -> float:
    """Return the log of the density in the middle."""
    return math.lgamma((tail + 1) / 2) - math.lgamma(tail / 2) - 0.5 * math.log(tail * math.pi)


def unimodal(sizes: Floats, log_prior: Floats, tails: tuple[float, ...]) -> Ways:
    """Return each size with each tail."""
    count = len(tails)
    zeros = np.zeros(count * len(sizes))
    return Ways(
        sizes=np.repeat(sizes, count),
        tails=np.tile(np.array(tails), len(sizes)),
        slow=zeros,
        jump=zeros,
        kinds=np.zeros(len(zeros), dtype=np.int64),
        log_prior=np.repeat(log_prior, count),
    )


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
        """Return sizes and jumps around the fitted ones."""
        sizes, jumps = (grid.ravel() for grid in np.meshgrid(self.size * SIZES, self.jump * JUMPS))
        ones = np.ones(len(sizes))
        return Ways(
            sizes=sizes,
            tails=NEARLY_GAUSSIAN * ones,
            slow=self.share * ones,
            jump=jumps,
            kinds=np.zeros(len(sizes), dtype=np.int64),
            log_prior=np.full(len(sizes), math.log(self.prior / len(sizes)) - self.unusual),
        )


def slow_mode(runs: Evidence, belief: Belief) -> SlowMode | None:
    """Return None where too few runs were repeated, or no two modes fit."""
    repeated = len(runs.values) - len(runs.positions)
    if repeated >= FREE:
        mode, one_mode = _best(runs, belief)
        if mode.jump >= LEAST_JUMP * mode.size and mode.fit >= one_mode + CLEAR_NATS:
            return mode
    if repeated >= REPEATED:
        alike = replace(runs, positions=runs.positions[:1], owner=np.zeros_like(runs.owner))
        mode, _ = _best(alike, belief)
        if LEAST_JUMP * mode.size <= mode.jump < min(MODES, CLEAR_JUMP * mode.size):
            return replace(mode, prior=UNSEEN)
    return None


def _best(runs: Evidence, belief: Belief) -> tuple[SlowMode, float]:
    """Return the best one, and how well one mode fits."""
    deviations = runs.values - runs.middles[runs.owner]
    spread = max(belief.least_noise, float(np.std(deviations)))
    mode = max(
        (_fitted(runs, start * spread, spread / 2, belief.least_noise) for start in STARTS),
        key=lambda candidate: candidate.fit,
    )
    # few runs may fall into two narrow groups by chance
    unusual = belief.log_noise_prior(spread) - belief.log_noise_prior(mode.size)
    return replace(mode, fit=mode.fit - unusual, unusual=unusual), _one_mode(deviations, spread)


def _fitted(runs: Evidence, jump: float, size: float, least_noise: float) -> SlowMode:
    values, owner, counts = runs.values, runs.owner, runs.counts
    levels = runs.middles - jump / 4
    share, fit = 0.3, -math.inf
    free = len(values) / max(1, len(values) - len(counts))
    for _ in range(ROUNDS):
        deviations = values - levels[owner]
        fast, slow = _log_normal(deviations, size), _log_normal(deviations - jump, size)
        density = np.logaddexp(math.log1p(-share) + fast, math.log(share) + slow)
        before, fit = fit, float(density.sum())
        if abs(fit - before) < ENOUGH_NATS:
            break
        is_slow = np.exp(math.log(share) + slow - density)
        levels = np.bincount(owner, weights=values - is_slow * jump) / counts
        deviations = values - levels[owner]
        jump = max(0.0, float(is_slow @ deviations) / max(TINY, float(is_slow.sum())))
        share = float(np.clip(is_slow.mean(), 0.03, 0.8))
        square = (1 - is_slow) @ deviations**2 + is_slow @ (deviations - jump) ** 2
        size = max(least_noise, math.sqrt(float(square) / len(values) * free))
    return SlowMode(share=share, jump=jump, size=size, levels=levels, fit=fit)


def _one_mode(deviations: Floats, spread: float) -> float:
    """Return the best fit of one mode, with any tails: Student's t with 4 degrees, or Gaussian."""
    sizes = spread * np.geomspace(0.3, 1.3, 12)[:, None]
    heavy = math.lgamma(2.5) - math.lgamma(2.0) - 0.5 * math.log(4 * math.pi)
    t4 = heavy - np.log(sizes) - 2.5 * np.log1p((deviations / sizes) ** 2 / 4)
    return float(max(t4.sum(1).max(), _log_normal(deviations, sizes).sum(1).max()))


def _log_normal(deviations: Floats, size: Floats | float) -> Floats:
    log_density: Floats = (
        -0.5 * (deviations / size) ** 2 - np.log(size) - 0.5 * math.log(2 * math.pi)
    )
    return log_density
