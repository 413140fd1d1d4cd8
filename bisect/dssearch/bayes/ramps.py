"""Ramps: many small steps in the same direction, from one gap to another. Core pure logic, no I/O.

The levels rise evenly from the start to the end. Each candidate's likelihood is taken as Gaussian
here, so that level and size are integrated in closed form (generalised least squares).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dssearch.bayes.lattice import Lattice
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import Floats, Ints

SHORTEST = 3  # steps; fewer are told apart as steps
LARGEST = 3.0  # a log
SIZES = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class Summary:
    """Of each candidate's own likelihood, for each way of being noisy."""

    log_area: Floats  # way, candidate
    means: Floats
    variances: Floats


def summary(tables: Floats, grid: Lattice) -> Summary:
    peak = tables.max(-1)
    shares = np.exp(tables - peak[:, :, None]) * grid.cells
    area = shares.sum(-1)
    shares /= area[:, :, None]
    means = shares @ grid.levels
    spread = shares @ grid.levels**2 - means**2
    return Summary(
        log_area=peak + np.log(area * grid.width),
        means=means,
        variances=np.maximum(spread, 0.0) + grid.width**2 / 12,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Ramps:
    """For each start, in one gap, and each end, in the same or a later one."""

    log_likelihood: Floats  # way, gap, gap
    level: Floats  # the expected one before the ramp
    size: Floats  # the expected one


def masses(positions: Ints) -> Floats:
    """The prior share of each pair of gaps: any start, lengths alike on a log scale."""
    length = float(positions[-1] - positions[0])
    wide = np.diff(positions).astype(np.float64)
    middle = (positions[:-1] + positions[1:]) / 2
    apart = np.maximum(SHORTEST, middle[None, :] - middle[:, None])
    shares = np.triu(np.outer(wide, wide) / apart, 1)
    span = positions[1:][None, :] - positions[:-1][:, None]
    shares[span < SHORTEST] = 0.0
    within = wide * np.log(np.maximum(1.0, wide / SHORTEST)) - np.maximum(0.0, wide - SHORTEST)
    shares[np.diag_indices(len(wide))] = np.maximum(0.0, within)
    total = float(shares.sum())
    found: Floats = shares / total if length > SHORTEST and total > 0 else np.zeros_like(shares)
    return found


def fit(seen: Summary, positions: Ints, grid: Lattice, noise: float, belief: Belief) -> Ramps:
    """(10), by least squares for every pair of gaps at once; the diagonal stays empty."""
    weights = 1 / seen.variances
    places = (positions - positions[0]).astype(np.float64)
    columns = [weights * part for part in (1.0, places, places**2, seen.means, seen.means * places)]
    sums = [np.concatenate([np.zeros((len(c), 1)), np.cumsum(c, axis=1)], axis=1) for c in columns]
    all_w, all_y = sums[0][:, -1, None], sums[3][:, -1, None]
    square = (weights * seen.means**2).sum(1)[:, None]
    gaps = len(positions) - 1
    one, two = np.triu_indices(gaps, 1)
    # candidates start + 1 .. end lie on the ramp, those after it on the upper level
    w, wp, wpp, wy, wyp = (s[:, two + 1] - s[:, one + 1] for s in sums)
    upper_w, upper_y = (s[:, -1, None] - s[:, two + 1] for s in (sums[0], sums[3]))
    # a ramp begins at the first or last place of its gap, and so it ends: four ways
    starts = np.stack([places[:-1], places[1:] - 1])[[0, 0, 1, 1]][:, None, one]
    ends = np.stack([places[:-1] + 1, places[1:]])[[0, 1, 0, 1]][:, None, two]
    length = np.maximum(1.0, ends - starts)
    s1 = (wp - starts * w) / length + upper_w
    s2 = (wpp - 2 * starts * wp + starts**2 * w) / length**2 + upper_w
    y1 = (wyp - starts * wy) / length + upper_y
    worth = np.maximum(1.0, s2 - s1**2 / all_w)
    pull = y1 - all_y * s1 / all_w
    moved = pull / worth
    low = belief.least_step(noise)
    squares = np.geomspace(low, max(LARGEST, 2 * low), SIZES) ** 2
    gain = pull**2 / 2
    peak = (gain / (worth + 1 / squares[-1])).max(0)  # the largest size fits best
    likely = np.zeros_like(peak)
    for square_size in squares:
        fits = np.exp(gain / (worth + 1 / square_size) - peak)
        likely += (fits / np.sqrt(1 + worth * square_size)).sum(0)
    gains = peak + np.log(likely / (SIZES * len(starts)))
    constant = (seen.log_area - 0.5 * np.log(2 * np.pi * seen.variances)).sum(1)[:, None]
    flat = 0.5 * np.log(2 * np.pi / all_w) - np.log(grid.width) - 0.5 * (square - all_y**2 / all_w)
    table, level, size = (np.full((len(weights), gaps, gaps), each) for each in (-np.inf, 0.0, 0.0))
    table[:, one, two] = gains + constant + flat
    level[:, one, two] = ((all_y - moved * s1) / all_w).mean(0)
    size[:, one, two] = moved.mean(0)
    return Ramps(log_likelihood=table, level=level, size=size)
