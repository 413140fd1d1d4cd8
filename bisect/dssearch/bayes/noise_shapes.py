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

    def only(self, kept: Ints) -> Ways:
        return Ways(**{each.name: getattr(self, each.name)[kept] for each in fields(self)})

    def normalised(self) -> Ways:
        """With priors that sum to 1."""
        return replace(self, log_prior=self.log_prior - log_sum(self.log_prior))

    def each_with(self, log_weights: Floats) -> Ways:
        """Every way with each of several alternatives; the alternatives vary slowest."""
        count, ways = len(log_weights), len(self.sizes)
        made = self.only(np.tile(np.arange(ways), count))
        return replace(made, log_prior=made.log_prior + np.repeat(log_weights, ways))

    def each_scattered(self, log_weights: Floats) -> Ways:
        """Every way with each scatter of builds."""
        kinds = np.repeat(np.arange(len(log_weights)), len(self.sizes))
        return replace(self.each_with(log_weights), kinds=kinds)

    def joined(self, other: Ways) -> Ways:
        return Ways(
            **{
                each.name: np.concatenate([getattr(self, each.name), getattr(other, each.name)])
                for each in fields(self)
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
        """For each way the density f in (6), or (4), of each group of runs together.

        Runs are at a distance from their level, in their scales; ``groups`` is where each begins.
        """
        squares = distance**2
        starts = np.log(self.sizes)[:, None] + np.log(scales)[:, 0]
        middles = np.array([_log_middle(float(tail)) for tail in self.tails])[:, None]
        alone = np.add.reduceat(middles - starts, groups, axis=1)[:, :, None]
        falls, widths = (self.tails + 1) / 2, 1 / (self.tails * self.sizes**2)
        for way in range(len(self.sizes)):
            if self.slow[way] > 0:
                both = self._log_two_modes(way, distance, scales)
                yield np.asarray(np.add.reduceat(both, groups, axis=0), dtype=np.float64)
                continue
            # one log for all of a group, since logs take most of the time
            product = np.multiply.reduceat(1 + squares * widths[way], groups, axis=0)
            yield np.asarray(alone[way] - falls[way] * np.log(product), dtype=np.float64)

    def log_density(self, distance: Floats) -> Floats:
        """Way, level: that of one run of the usual noise."""
        return np.stack([self._log_run(way, distance) for way in range(len(self.sizes))])

    def log_chances(self, low: Floats, high: Floats) -> Floats:
        """Way, level: the log of the chance that a run lies between two distances."""
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
        size, tail, share = (float(each[way]) for each in (self.sizes, self.tails, self.slow))
        fast = _log_t(distance / size, tail)
        slow = _log_t((distance - self.jump[way] / scales) / size, tail)
        both: Floats = np.logaddexp(np.log1p(-share) + fast, np.log(share) + slow)
        return both - np.log(size * scales)


def _between(low: Floats, high: Floats, tail: Floats) -> Floats:
    """The chance of a t between two values; from the nearer end, so that small ones are exact."""
    flip = low > 0
    one, other = np.where(flip, -high, low), np.where(flip, -low, high)
    chance: Floats = stdtr(tail, other) - stdtr(tail, one)
    return chance


def _log_t(distance: Floats, tail: float) -> Floats:
    found: Floats = _log_middle(tail) - (tail + 1) / 2 * np.log1p(distance**2 / tail)
    return found


@functools.cache
def _log_middle(tail: float) -> float:
    """The log of the density in the middle."""
    return math.lgamma((tail + 1) / 2) - math.lgamma(tail / 2) - 0.5 * math.log(tail * math.pi)


def unimodal(sizes: Floats, log_prior: Floats, tails: tuple[float, ...]) -> Ways:
    """Each size with each tail."""
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
