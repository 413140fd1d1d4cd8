"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import gammaln

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.lattice import Lattice
from dsbisect.search.bayes.machine_offsets import Shifts
from dsbisect.search.bayes.track import TINY, Floats

UNLIKELY = 15.0  # nats below the likeliest


def log_likelihood(seen: Evidence, grid: Lattice, moved: Shifts) -> tuple[Floats, Lattice]:
    """For each noise, measured candidate and level; Student's t, so an outlier weighs little.

    Where there are several machines, each shift of their offsets is one more way of being noisy;
    those that fit far worse than others, whatever the levels are, are left out.
    """
    tables = np.concatenate(
        [
            _log_likelihood(replace(seen, values=seen.values - shift[seen.machines]), grid)
            for shift in moved.sizes
        ]
    )
    if len(moved.sizes) == 1:
        return tables, grid
    grid = grid.with_shifts(moved.log_weights)
    fit = tables.max(-1).sum(-1) + grid.log_prior
    kept = np.flatnonzero(fit >= fit.max() - UNLIKELY)
    return tables[kept], grid.only(kept)


def _log_likelihood(seen: Evidence, grid: Lattice) -> Floats:
    order = np.argsort(seen.owner, kind="stable")
    starts = np.searchsorted(seen.owner[order], np.arange(len(seen.positions)))
    distance = seen.values[order, None] - grid.levels[None, :]
    scales = seen.scales[order, None]
    tables = np.empty((len(grid.noises), len(seen.positions), len(grid.levels)))
    for at, (noise, tail) in enumerate(zip(grid.noises, grid.tails, strict=True)):
        size = noise * scales
        constant = gammaln((tail + 1) / 2) - gammaln(tail / 2) - 0.5 * np.log(tail * np.pi)
        each = constant - np.log(size) - (tail + 1) / 2 * np.log1p((distance / size) ** 2 / tail)
        tables[at] = np.add.reduceat(each, starts, axis=0)
    return tables


def with_strays(tables: Floats, grid: Lattice, strays: float) -> Floats:
    """Each candidate's own level lies a little off that of its segment: no runs can tell why."""
    if strays <= 0:
        return tables
    distance = np.subtract.outer(grid.levels, grid.levels) / strays
    kernel = np.exp(-0.5 * distance**2)
    kernel /= kernel.sum(1, keepdims=True)
    peak = tables.max(-1, keepdims=True)
    mixed: Floats = np.log(np.maximum(TINY, np.exp(tables - peak) @ kernel.T)) + peak
    return mixed
