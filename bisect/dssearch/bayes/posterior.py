"""The posterior: no step, one, two, or a ramp. Core pure logic, no I/O.

Between two neighbours that were measured, nothing tells the candidates apart: they form a *gap*.
So all hypotheses are about gaps, whatever the length of the line.

     0  .  .  3  .  5          measured: 0, 3 and 5
        gap 1    gap 2         a step at 1, 2 or 3; a step at 4 or 5
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.lattice import Lattice, lattice, noise_estimate, noises_around, step_priors
from dssearch.bayes.likelihood import (
    UNLIKELY,
    Likelihood,
    fit_ramps,
    log_likelihood,
    ramp_masses,
    summary,
)
from dssearch.bayes.machine_offsets import shifts
from dssearch.bayes.machine_speed import widened, without_speed
from dssearch.bayes.noise_shapes import Ways, slow_mode, unimodal
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats, Ints, Track, log_sum

WORTH_PARTING = 0.005  # a chance of two steps
SLOPE = 6  # candidates: two equal steps look like a slope to three of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Likelihoods of what lies before and after each gap, scaled so that each peaks at 1."""

    before: Floats  # way, gap, level: all before the gap is at this level
    after: Floats
    log_scale: Floats  # way, gap
    arrive: Floats  # way, gap, level: one step led here
    leave: Floats  # one step leads from here to all that follows
    sums: Floats  # way, gap, level: logs

    def only(self, numbers: Ints) -> Chain:
        """Return some of the ways."""
        return Chain(**{field.name: getattr(self, field.name)[numbers] for field in fields(self)})

    def log_one(self, grid: Lattice) -> Floats:
        """Return (8) by way and gap."""
        likely = np.maximum(TINY, (self.arrive * self.after * grid.cells).sum(-1))
        log_likelihoods: Floats = self.log_scale + np.log(likely)
        return log_likelihoods

    def middle(self, first: int | Ints, second: int | Ints) -> Floats:
        """Way, pair, level: all between two gaps is at this level, scaled like the rest."""
        between = self.sums[:, second] - self.sums[:, first]
        scaled: Floats = np.exp(between - between.max(-1, keepdims=True))
        return scaled


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Chances that sum to 1: ``none + one.sum() + two.sum() + ramps.sum()``."""

    none: float
    one: Floats  # by gap
    two: Floats  # by pair of gaps, upper triangle with the diagonal
    ramps: Floats  # by gaps of start and end, upper triangle with the diagonal
    runs: Evidence
    grid: Lattice
    chain: Chain
    steps: Floats  # scatter, level, level: prior of a step
    scatter_prior: Floats
    kinds: Ints  # of each way, which scatter it has
    log_two: Floats  # way, gap, gap: (9)
    odd: Floats  # way, measured candidate, level of its segment: the chance that it is odd
    one_way: Floats  # way, gap: the share of each way within ``one``
    any_way: Floats  # the share of each way in all
    ramp_levels: Floats  # by gaps: the expected level before a ramp
    ramp_sizes: Floats
    noise: float  # of one sample, as far as it hides a level
    scatters: Floats  # of builds

    @property
    def gaps(self) -> int:
        return len(self.one)

    @property
    def scatter_chances(self) -> Floats:
        """Of each scatter of builds."""
        count = len(self.scatters)
        return np.bincount(self.kinds, weights=self.any_way, minlength=count).astype(np.float64)

    @property
    def scatter(self) -> float:
        """By how much builds differ: the root of the expected square."""
        return float(np.sqrt(self.scatter_chances @ self.scatters**2))

    @property
    def ramp(self) -> float:
        return float(self.ramps.sum())

    @property
    def rise(self) -> float:
        """The expected size of a ramp: a log, above 0 is slower."""
        return float((self.ramps * self.ramp_sizes).sum()) / max(TINY, self.ramp)

    def ends(self, gap: int) -> tuple[int, int]:
        """The step is after the first and not after the second."""
        return int(self.runs.positions[gap]), int(self.runs.positions[gap + 1])

    @cached_property
    def pairs(self) -> Floats:
        """For each two gaps the chance that both contain a step; 0 on the diagonal."""
        chances: Floats = self.two + self.two.T
        np.fill_diagonal(chances, 0.0)
        return chances

    @cached_property
    def stepped(self) -> Floats:
        """For each gap the chance that a step is in it."""
        chance: Floats = self.one + np.diag(self.two) + self.pairs.sum(axis=1)
        return chance

    def odd_chances(self, gap: int | None) -> Floats:
        """Return one for each measured candidate, with one step in that gap, or none."""
        if gap is None:
            sums = self.chain.sums[:, -1]
            level = np.exp(sums - sums.max(-1, keepdims=True)) * self.grid.cells
            level *= (self.any_way / level.sum(-1))[:, None]
            return np.asarray(np.einsum("wl,wil->i", level, self.odd), dtype=np.float64)
        before, after = (side[:, gap] for side in sides(self.chain, self.grid, self.one_way))
        return np.concatenate(
            [
                np.einsum("wl,wil->i", before, self.odd[:, : gap + 1]),
                np.einsum("wl,wil->i", after, self.odd[:, gap + 1 :]),
            ]
        )

    def below(self, least: float) -> float:
        """Return the chance of one step or two, each smaller than that (a log)."""
        arrive, log_one = self._one_below(least)
        if self.two.sum() <= WORTH_PARTING:
            return self._chance_of_one(log_one)
        small = self.steps * self.grid.shares_below(least)
        leave = led(self.chain.after * self.grid.cells, small, self.kinds)
        upper = (..., *np.triu_indices(self.gaps))
        chain = replace(self.chain, arrive=arrive, leave=leave)
        ratios = np.exp(_log_two(chain, log_one, self.grid)[upper] - self.log_two[upper])
        return self._chance_of_one(log_one) + float(self.any_way @ ratios @ self.two[upper])

    def at_most_below(self, least: float) -> float:
        """No less than that chance, and found sooner: as if all of two steps were as small."""
        return self._chance_of_one(self._one_below(least)[1]) + float(self.two.sum())

    def _one_below(self, least: float) -> tuple[Floats, Floats]:
        """Return where one such step leads, and its log-likelihood by way and gap."""
        small = self.steps * self.grid.shares_below(least)
        arrive = led(self.chain.before * self.grid.cells, small, self.kinds)
        return arrive, replace(self.chain, arrive=arrive).log_one(self.grid)

    def _chance_of_one(self, log_one: Floats) -> float:
        part = np.exp(log_one - self.chain.log_one(self.grid))
        return float((self.one_way * self.one * part).sum())


def weigh(evidence: Evidence, line: Track, belief: Belief) -> Posterior:
    """Compute (1) to (11). At least two candidates were measured, the ends among them."""
    evidence = without_speed(widened(evidence), belief)
    noise = noise_estimate(evidence, belief)
    ways = unimodal(*noises_around(noise, belief, evidence), belief.tails)
    middles, slow = evidence.middles, slow_mode(evidence, belief)
    if slow is not None:
        if len(slow.levels) > 1:  # clear: the noise is that of one mode
            noise = slow.size
        middles = np.concatenate([middles, slow.levels])
        ways = ways.normalised().joined(slow.ways())
    errors = np.resize(noise / np.sqrt(evidence.counts), len(middles))
    grid = lattice(middles, errors, belief)
    steps = step_priors(grid, noise, belief)
    moved = shifts(evidence.machines, evidence.doubts, noise)
    evidence = replace(evidence, scales=evidence.scales * moved.scales[evidence.machines])
    likely, ways = log_likelihood(evidence, grid, ways, moved, belief, steps)
    likely, ways, log_none, log_one, chain = _single(likely, ways, grid, steps)
    masses, pairs = _prior_masses(evidence, line)
    prior = ways.log_prior - log_sum(ways.log_prior)
    ramps = fit_ramps(summary(likely.ordinary, grid), evidence.positions, grid, noise, belief)
    # between a few candidates a ramp is as many steps, and one of them is asked for
    ramp = belief.ramp if evidence.positions[-1] - evidence.positions[0] >= SLOPE else 0.0
    inside = ramps.log_likelihood
    gaps, log_two = np.arange(len(masses)), _log_two(chain, log_one, grid)
    inside[:, gaps, gaps] = log_one  # a ramp within one gap looks like a step there
    with np.errstate(divide="ignore"):
        by_way = {
            "none": np.log(belief.none) + prior + log_none,
            "one": np.log(belief.one * masses) + prior[:, None] + log_one,
            "two": np.log(belief.two * pairs) + prior[:, None, None] + log_two,
            "ramps": np.log(ramp * ramp_masses(evidence.positions)) + prior[:, None, None] + inside,
        }
    peak = max(float(table.max()) for table in by_way.values())
    weights = {kind: np.exp(table - peak) for kind, table in by_way.items()}
    total = sum(float(table.sum()) for table in weights.values())
    weights = {kind: table / total for kind, table in weights.items()}
    any_way = np.sum([table.reshape(len(prior), -1).sum(1) for table in weights.values()], axis=0)
    single, part = weights["one"].sum(0), weights["ramps"]
    two, one_way = weights["two"].sum(0), weights["one"] / np.maximum(single, TINY)
    share = part / np.maximum(TINY, part.sum(0))
    between = likely.odd[:, 1:-1] * (np.diag(pairs, 1) > 0)[:, None]  # where two steps may be
    _part_between(single, two, sides(chain, grid, one_way), between, evidence.middles, grid)
    return Posterior(
        none=float(weights["none"].sum()),
        one=single,
        two=two,
        ramps=part.sum(0),
        runs=evidence,
        grid=grid,
        chain=chain,
        steps=steps,
        scatter_prior=np.array([builds.chance for builds in belief.scatters]),
        kinds=ways.kinds,
        log_two=log_two,
        odd=likely.odd,
        one_way=one_way,
        any_way=any_way,
        ramp_levels=(share * ramps.level).sum(0),
        ramp_sizes=(share * ramps.size).sum(0),
        noise=float(np.sqrt(any_way @ ways.variances)),
        scatters=np.array([builds.size for builds in belief.scatters]),
    )


def _single(
    likely: Likelihood, ways: Ways, grid: Lattice, steps: Floats
) -> tuple[Likelihood, Ways, Floats, Floats, Chain]:
    """Return the likelihoods of no step, (7), and of one, (8), and of the ways that may matter."""
    tables = likely.tables
    most = tables.max(-1).sum(-1) + ways.log_prior + np.log(grid.cells.sum())
    log_none = log_sum(tables.sum(1) + np.log(grid.cells), axis=-1)
    chain = _chain(tables, steps, ways.kinds, grid)
    log_one = chain.log_one(grid)
    best = (np.maximum(log_none, log_one.max(1)) + ways.log_prior).max()
    likely_ways = np.flatnonzero(most >= best - UNLIKELY)
    if len(likely_ways) == len(most):
        return likely, ways, log_none, log_one, chain
    return (
        likely.only(likely_ways),
        ways.only(likely_ways),
        log_none[likely_ways],
        log_one[likely_ways],
        chain.only(likely_ways),
    )


def _chain(tables: Floats, steps: Floats, kinds: Ints, grid: Lattice) -> Chain:
    sums = np.cumsum(tables, axis=1)
    before, after = sums[:, :-1], sums[:, -1:] - sums[:, :-1]
    before_peak, after_peak = before.max(-1, keepdims=True), after.max(-1, keepdims=True)
    before_shares, after_shares = np.exp(before - before_peak), np.exp(after - after_peak)
    return Chain(
        before=before_shares,
        after=after_shares,
        log_scale=(before_peak + after_peak)[:, :, 0],
        arrive=led(before_shares * grid.cells, steps, kinds),
        leave=led(after_shares * grid.cells, steps, kinds),
        sums=sums,
    )


def sides(chain: Chain, grid: Lattice, one_way: Floats) -> tuple[Floats, Floats]:
    """Return by way, gap, level the chances of the levels before and after a single step."""
    levels = chain.before * chain.leave * grid.cells, chain.arrive * chain.after * grid.cells
    before, after = (
        side / np.maximum(TINY, side.sum(-1, keepdims=True)) * one_way[:, :, None]
        for side in levels
    )
    return before, after


def _part_between(
    single: Floats,
    double: Floats,
    levels: tuple[Floats, Floats],
    odd: Floats,
    middles: Floats,
    grid: Lattice,
) -> None:
    """An odd candidate whose level lies between those next to it is no odd one: two steps."""
    before, after = (side.sum(0) @ grid.levels for side in levels)
    low, high = np.minimum(before, after), np.maximum(before, after)
    places = np.arange(1, len(single))  # each lies after gap ``place - 1`` and before gap ``place``
    for side, gaps in ((levels[0], places), (levels[1], places - 1)):
        chance = (side[:, gaps] * odd).sum((0, 2))
        between = (middles[places] > low[gaps]) & (middles[places] < high[gaps])
        moved = single[gaps] * np.minimum(chance, 1.0) * between
        single[gaps] -= moved
        double[places - 1, places] += moved


def led(levels: Floats, steps: Floats, kinds: Ints) -> Floats:
    """Return where a step leads from each level; the first axis of ``levels`` is the way."""
    flat = levels.reshape(len(kinds), -1, levels.shape[-1])
    reached = np.empty_like(flat)
    for kind, ways in by_kind(kinds):
        # as one matrix: many small products take longer
        part = flat[ways]
        reached[ways] = (part.reshape(-1, part.shape[-1]) @ steps[kind]).reshape(part.shape)
    return reached.reshape(levels.shape)


def by_kind(kinds: Ints) -> Iterator[tuple[int, slice]]:
    """Yield each kind with its ways, which follow one another."""
    ends = [*(np.flatnonzero(np.diff(kinds)) + 1).tolist(), len(kinds)]
    for first, last in itertools.pairwise([0, *ends]):
        yield int(kinds[first]), slice(first, last)


def _log_two(chain: Chain, log_one: Floats, grid: Lattice) -> Floats:
    """Return a step in each of two gaps, (9); two in one gap cannot be told from one."""
    gaps = log_one.shape[1]
    table = np.full((len(log_one), gaps, gaps), -np.inf)
    table[:, np.arange(gaps), np.arange(gaps)] = log_one
    scale_before = chain.sums[:, :-1].max(-1)
    scale_after = chain.log_scale - scale_before
    leave = chain.leave * grid.cells
    for first in range(gaps - 1):
        middle = chain.sums[:, first + 1 : -1] - chain.sums[:, first : first + 1]
        peak = middle.max(-1)
        middle -= peak[:, :, None]
        # in place: most of the time went into fresh memory
        likely = np.exp(middle, out=middle)
        likely *= leave[:, first + 1 :]
        total = (likely @ chain.arrive[:, first, :, None])[:, :, 0]
        scale = scale_before[:, first : first + 1] + peak + scale_after[:, first + 1 :]
        table[:, first, first + 1 :] = scale + np.log(np.maximum(TINY, total))
    return table


def _prior_masses(runs: Evidence, line: Track) -> tuple[Floats, Floats]:
    """Return the share of one step in each gap, and of two steps in each pair of gaps."""
    masses = np.diff(line.sums[runs.positions])
    squares = np.diff(line.squares[runs.positions])
    total = max(TINY, float(masses.sum()))
    masses, squares = masses / total, squares / total**2
    pairs = 2 * np.triu(np.outer(masses, masses), 1)
    pairs[np.diag_indices(len(masses))] = np.maximum(0.0, masses**2 - squares)
    # with a single place for a step there are never two: that chance goes nowhere
    return masses, pairs / max(TINY, float(pairs.sum()))
