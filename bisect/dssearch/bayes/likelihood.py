"""How likely each level, and each ramp, makes what was measured. Core pure logic, no I/O.

A ramp is many small steps in the same direction, from one gap to another: the levels rise evenly
from the start to the end. Each candidate's likelihood is taken as Gaussian there, so that level and
size are integrated in closed form (generalised least squares).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.lattice import Lattice
from dssearch.bayes.machine_offsets import Shifts
from dssearch.bayes.noise_shapes import Ways
from dssearch.bayes.prior import Belief, Scatter
from dssearch.bayes.track import TINY, Floats, Ints

UNLIKELY = 12.0  # nats below the likeliest
LONG = 6  # candidates of a line in which one may be odd
TOGETHER = 8  # runs of one candidate, whose product is far from what a float can hold


@dataclass(frozen=True, kw_only=True, eq=False)
class Likelihood:
    """T in (6), with the part of it that is due to an odd build."""

    tables: Floats  # way, measured candidate, level of its segment: logs
    odd: Floats  # the same: a share

    def only(self, numbers: Ints) -> Likelihood:
        """Return some of the ways."""
        return Likelihood(tables=self.tables[numbers], odd=self.odd[numbers])

    @property
    def ordinary(self) -> Floats:
        """The tables as if no build were odd."""
        tables: Floats = self.tables + np.log(np.maximum(TINY, 1 - self.odd))
        return tables


def log_likelihood(
    runs: Evidence, grid: Lattice, ways: Ways, moved: Shifts, belief: Belief, steps: Floats
) -> tuple[Likelihood, Ways]:
    """Return T in (6), by way of being noisy, measured candidate and level of its segment.

    An odd build lies off its segment as if there were a step before it and one back after it.
    Each shift of the machines' offsets and each scatter of builds makes further ways. Those that
    fit far worse than others, whatever the levels are, are left out.
    """
    tables = np.concatenate(
        [
            _of_runs(replace(runs, values=runs.values - shift[runs.machines]), grid, ways)
            for shift in moved.sizes
        ]
    )
    ways = ways.each_with(moved.log_weights)
    fit = tables.max(-1).sum(-1) + ways.log_prior
    likely = np.flatnonzero(fit >= fit.max() - UNLIKELY)
    tables, ways = tables[likely], ways.only(likely)
    weights = np.log([builds.chance for builds in belief.scatters])
    shares = _odd_shares(runs.positions, belief)
    scattered = _of_builds(tables, grid, belief, steps, shares)
    return scattered, ways.each_scattered(weights)


def _of_runs(runs: Evidence, grid: Lattice, ways: Ways) -> Floats:
    order = np.argsort(runs.owner, kind="stable")
    starts = np.searchsorted(runs.owner[order], np.arange(len(runs.positions)))
    distance = (runs.values[order, None] - grid.levels[None, :]) / runs.scales[order, None]
    scales = runs.scales[order, None]
    counts = zip(starts, runs.counts, strict=True)
    groups = np.concatenate([np.arange(start, start + count, TOGETHER) for start, count in counts])
    firsts = np.searchsorted(groups, starts)
    tables = np.empty((len(ways.sizes), len(runs.positions), len(grid.levels)))
    for way, densities in enumerate(ways.log_densities(distance, scales, groups)):
        np.add.reduceat(densities, firsts, axis=0, out=tables[way])
    _weigh_ranges(tables, runs, grid, ways)
    return tables


def _weigh_ranges(tables: Floats, runs: Evidence, grid: Lattice, ways: Ways) -> None:
    """The chance of a range instead of the density of a value, where a run tells no more."""
    for run in np.flatnonzero(runs.below + runs.above > 0):
        ends = runs.values[run] + np.array([-runs.below[run], 0.0, runs.above[run]])
        low, value, high = (ends[:, None] - grid.levels[None, :]) / runs.scales[run]
        tables[:, runs.owner[run]] += ways.log_chances(low, high) - ways.log_density(value)


def _odd_shares(positions: Ints, belief: Belief) -> Floats:
    """Return the chance of each candidate to be an odd one, in advance.

    What differs at an end lasts to that end: it is a step. In a short line two steps are as likely.
    """
    long = positions[-1] - positions[0] >= LONG
    shares = np.full((len(positions), 1), belief.odd if long else 0.0)
    shares[[0, -1]] = 0.0
    return shares


def _of_builds(
    tables: Floats, grid: Lattice, belief: Belief, steps: Floats, shares: Floats
) -> Likelihood:
    """Return a random effect of each build, (6): its own level lies off that of its segment."""
    distance = np.subtract.outer(grid.levels, grid.levels)
    peak = tables.max(-1, keepdims=True)
    likely = np.exp(tables - peak).reshape(-1, len(grid.levels))
    mixed, odd = [], []
    for builds, far in zip(belief.scatters, steps, strict=True):
        spread = likely
        if builds.size > grid.width / 3:
            kernel = off_source(distance, builds) * grid.cells[None, :]
            kernel /= kernel.sum(1, keepdims=True)
            spread = likely @ kernel.T
        alone = shares * (likely @ (far * grid.cells).T).reshape(tables.shape)
        whole = np.maximum(TINY, (1 - shares) * spread.reshape(tables.shape) + alone)
        mixed.append(np.log(whole) + peak)
        odd.append(alone / whole)
    return Likelihood(tables=np.concatenate(mixed), odd=np.concatenate(odd))


def off_source(distance: Floats, builds: Scatter) -> Floats:
    """Return how likely a build is to lie so far off its source, up to a constant."""
    if not builds.layouts:
        return np.asarray(np.exp(-0.5 * (distance / builds.width) ** 2))
    return np.asarray(np.exp(-0.5 * ((np.abs(distance) - builds.size) / builds.width) ** 2))


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


def ramp_masses(positions: Ints) -> Floats:
    """Return the prior share of each pair of gaps: any start, lengths alike on a log scale."""
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
    masses: Floats = shares / total if length > SHORTEST and total > 0 else np.zeros_like(shares)
    return masses


def fit_ramps(
    candidates: Summary, positions: Ints, grid: Lattice, noise: float, belief: Belief
) -> Ramps:
    """Fit (10) by least squares for every pair of gaps at once; the diagonal stays empty."""
    weights = 1 / candidates.variances
    places = (positions - positions[0]).astype(np.float64)
    columns = [
        weights * part
        for part in (1.0, places, places**2, candidates.means, candidates.means * places)
    ]
    sums = [np.concatenate([np.zeros((len(c), 1)), np.cumsum(c, axis=1)], axis=1) for c in columns]
    all_w, all_y = sums[0][:, -1, None], sums[3][:, -1, None]
    square = (weights * candidates.means**2).sum(1)[:, None]
    gaps = len(positions) - 1
    start_gap, end_gap = np.triu_indices(gaps, 1)
    # candidates start + 1 .. end lie on the ramp, those after it on the upper level
    w, wp, wpp, wy, wyp = (s[:, end_gap + 1] - s[:, start_gap + 1] for s in sums)
    upper_w, upper_y = (s[:, -1, None] - s[:, end_gap + 1] for s in (sums[0], sums[3]))
    # a ramp begins at the first or last place of its gap, and so it ends: four ways
    starts = np.stack([places[:-1], places[1:] - 1])[[0, 0, 1, 1]][:, None, start_gap]
    ends = np.stack([places[:-1] + 1, places[1:]])[[0, 1, 0, 1]][:, None, end_gap]
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
    constant = (candidates.log_area - 0.5 * np.log(2 * np.pi * candidates.variances)).sum(1)[
        :, None
    ]
    flat = 0.5 * np.log(2 * np.pi / all_w) - np.log(grid.width) - 0.5 * (square - all_y**2 / all_w)
    table, level, size = (np.full((len(weights), gaps, gaps), fill) for fill in (-np.inf, 0.0, 0.0))
    table[:, start_gap, end_gap] = gains + constant + flat
    level[:, start_gap, end_gap] = ((all_y - moved * s1) / all_w).mean(0)
    size[:, start_gap, end_gap] = moved.mean(0)
    return Ramps(log_likelihood=table, level=level, size=size)
