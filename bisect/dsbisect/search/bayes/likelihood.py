"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.lattice import Lattice
from dsbisect.search.bayes.machine_offsets import Shifts
from dsbisect.search.bayes.noise_shapes import Ways
from dsbisect.search.bayes.prior import Belief
from dsbisect.search.bayes.track import TINY, Floats

UNLIKELY = 12.0  # nats below the likeliest
TOGETHER = 8  # runs of one candidate, whose product is far from what a float can hold


def log_likelihood(
    seen: Evidence, grid: Lattice, ways: Ways, moved: Shifts, belief: Belief
) -> tuple[Floats, Ways]:
    """T in (6): for each way of being noisy, measured candidate and level of its segment.

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
    scattered = _of_builds(tables, grid, [size for size, _ in belief.scatters])
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


def _of_builds(tables: Floats, grid: Lattice, scatters: Sequence[float]) -> Floats:
    """A random effect of each build, (6): its own level lies off that of its segment."""
    distance = np.subtract.outer(grid.levels, grid.levels)
    peak = tables.max(-1, keepdims=True)
    likely = np.exp(tables - peak).reshape(-1, len(grid.levels))
    mixed = []
    for scatter in scatters:
        if scatter <= grid.width / 3:
            mixed.append(tables)
            continue
        kernel = np.exp(-0.5 * (distance / scatter) ** 2) * grid.cells[None, :]
        kernel /= kernel.sum(1, keepdims=True)
        spread = (likely @ kernel.T).reshape(tables.shape)
        mixed.append(np.log(np.maximum(TINY, spread)) + peak)
    return np.concatenate(mixed)
