"""How likely each level makes what was measured. Core pure logic, no I/O."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from dsbisect.posterior.evidence import Evidence
from dsbisect.posterior.lattice import Lattice
from dsbisect.posterior.track import Floats

KNOWN = 8.0  # pairs of samples it takes to believe in a speed that samples share
SHARED = 0.2  # less correlation than this is none


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


def without_shared_speed(seen: Evidence, expected: Floats) -> Evidence:
    """Take from each sample what the one before it says about the speed they share.

    ``expected`` is the level of each candidate as it looks so far. Samples of one turn share the
    machine's speed, and those of two turns that follow each other may: each has its correlation,
    and one that was not seen on enough pairs counts as none.
    """
    if len(seen.values) < 4:
        return seen
    rest = seen.values - expected[seen.owner]
    size = 1.5 * float(np.median(np.abs(rest)))
    if size <= 0:
        return seen
    rest = np.clip(rest, -2 * size, 2 * size)
    together = seen.turns[1:] == seen.turns[:-1]
    carried = np.zeros(len(rest))
    scales = np.ones(len(rest))
    for kind in (together, ~together):
        correlation = _correlation(rest[:-1][kind], rest[1:][kind])
        if correlation > SHARED:
            later = np.flatnonzero(kind) + 1
            carried[later] = correlation * rest[later - 1]
            scales[later] = np.sqrt(1 - correlation**2)
    return seen.shifted(seen.values - carried, scales) if np.any(carried) else seen


def _correlation(one: Floats, other: Floats) -> float:
    if len(one) < 2:
        return 0.0
    square = float(np.mean(np.concatenate([one, other]) ** 2))
    if square <= 0:
        return 0.0
    return float(min(0.97, np.sum(one * other) / square / (len(one) + KNOWN)))
