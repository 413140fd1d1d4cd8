"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.lattice import Lattice
from dsbisect.search.bayes.track import TINY, Floats


def log_likelihood(seen: Evidence, grid: Lattice) -> Floats:
    """For each noise, measured candidate and level; Student's t, so an outlier weighs little."""
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
