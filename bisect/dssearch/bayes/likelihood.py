"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.lattice import Lattice
from dssearch.bayes.machine_offsets import Shifts
from dssearch.bayes.noise_shapes import Ways
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats, Ints

UNLIKELY = 12.0  # nats below the likeliest
LONG = 6  # candidates of a line in which one may be odd
TOGETHER = 8  # runs of one candidate, whose product is far from what a float can hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """T in (6), with the part of it that is due to an odd build."""

    tables: Floats  # way, measured candidate, level of its segment: logs
    odd: Floats  # the same: a share

    def only(self, kept: Ints) -> Likelihood:
        """Some of the ways."""
        return Likelihood(tables=self.tables[kept], odd=self.odd[kept])

    @property
    def ordinary(self) -> Floats:
        """The tables as if no build were odd."""
        found: Floats = self.tables + np.log(np.maximum(TINY, 1 - self.odd))
        return found


def log_likelihood(
    seen: Evidence, grid: Lattice, ways: Ways, moved: Shifts, belief: Belief, steps: Floats
) -> tuple[Likelihood, Ways]:
    """T in (6): for each way of being noisy, measured candidate and level of its segment.

    An odd build lies off its segment as if there were a step before it and one back after it.
    Each shift of the machines' offsets and each scatter of builds makes further ways. Those that
    fit far worse than others, whatever the levels are, are left out.
    """
    tables = np.concatenate(
        [
            _of_runs(replace(seen, values=seen.values - shift[seen.machines]), grid, ways)
            for shift in moved.sizes
        ]
    )
    ways = ways.each_with(moved.log_weights)
    fit = tables.max(-1).sum(-1) + ways.log_prior
    kept = np.flatnonzero(fit >= fit.max() - UNLIKELY)
    tables, ways = tables[kept], ways.only(kept)
    weights = np.log([weight for _, weight in belief.scatters])
    shares = _odd_shares(seen.positions, belief)
    scattered = _of_builds(tables, grid, belief, steps, shares)
    return scattered, ways.each_scattered(weights)


def _of_runs(seen: Evidence, grid: Lattice, ways: Ways) -> Floats:
    order = np.argsort(seen.owner, kind="stable")
    starts = np.searchsorted(seen.owner[order], np.arange(len(seen.positions)))
    distance = (seen.values[order, None] - grid.levels[None, :]) / seen.scales[order, None]
    scales = seen.scales[order, None]
    counts = zip(starts, seen.counts, strict=True)
    groups = np.concatenate([np.arange(at, at + count, TOGETHER) for at, count in counts])
    firsts = np.searchsorted(groups, starts)
    tables = np.empty((len(ways.sizes), len(seen.positions), len(grid.levels)))
    for way, each in enumerate(ways.log_densities(distance, scales, groups)):
        np.add.reduceat(each, firsts, axis=0, out=tables[way])
    return tables


def _odd_shares(positions: Ints, belief: Belief) -> Floats:
    """The chance of each candidate to be an odd one, in advance.

    What differs at an end lasts to that end: it is a step. In a short line two steps are as likely.
    """
    long = positions[-1] - positions[0] >= LONG
    shares = np.full((len(positions), 1), belief.odd if long else 0.0)
    shares[[0, -1]] = 0.0
    return shares


def _of_builds(
    tables: Floats, grid: Lattice, belief: Belief, steps: Floats, shares: Floats
) -> Likelihood:
    """A random effect of each build, (6): its own level lies off that of its segment."""
    distance = np.subtract.outer(grid.levels, grid.levels)
    peak = tables.max(-1, keepdims=True)
    likely = np.exp(tables - peak).reshape(-1, len(grid.levels))
    mixed, odd = [], []
    for (scatter, _), far in zip(belief.scatters, steps, strict=True):
        spread = likely
        if scatter > grid.width / 3:
            kernel = np.exp(-0.5 * (distance / scatter) ** 2) * grid.cells[None, :]
            kernel /= kernel.sum(1, keepdims=True)
            spread = likely @ kernel.T
        alone = shares * (likely @ (far * grid.cells).T).reshape(tables.shape)
        whole = np.maximum(TINY, (1 - shares) * spread.reshape(tables.shape) + alone)
        mixed.append(np.log(whole) + peak)
        odd.append(alone / whole)
    return Likelihood(tables=np.concatenate(mixed), odd=np.concatenate(odd))
