"""The ways in which runs may be noisy, among which the posterior weighs. Core pure logic, no I/O.

A way is a size, a shape (Student's t with some degrees of freedom, or two modes) and the scatter
of builds: how far the level of each build lies off that of its source, whatever its runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np

from dssearch.bayes.track import Floats, Ints, log_sum

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

    def _log_two_modes(self, way: int, distance: Floats, scales: Floats) -> Floats:
        size, tail, share = (float(each[way]) for each in (self.sizes, self.tails, self.slow))
        fast = _log_t(distance / size, tail)
        slow = _log_t((distance - self.jump[way] / scales) / size, tail)
        both: Floats = np.logaddexp(np.log1p(-share) + fast, np.log(share) + slow)
        return both - np.log(size * scales)


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
