"""The posterior: no step, one, two, or a drift. Core pure logic, no I/O.

Between two neighbours that were measured, nothing tells the candidates apart: they form a *gap*.
So all hypotheses are about gaps, whatever the length of the line.

     0  .  .  3  .  5          measured: 0, 3 and 5
        gap 1    gap 2         a step at 1, 2 or 3; a step at 4 or 5
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from dsbisect.search.bayes.disturbance import widened
from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.lattice import Lattice, lattice, step_prior
from dsbisect.search.bayes.likelihood import log_likelihood, with_strays
from dsbisect.search.bayes.machine_offsets import shifts
from dsbisect.search.bayes.machine_speed import steadied
from dsbisect.search.bayes.prior import Belief
from dsbisect.search.bayes.track import TINY, Floats, Track

SLOPE = 6  # candidates: two equal steps look like a slope to three of them


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """Likelihoods of what lies before and after each gap, scaled so that each peaks at 1."""

    before: Floats  # noise, gap, level: all before the gap is at this level
    after: Floats
    log_scale: Floats  # noise, gap
    arrive: Floats  # noise, gap, level: one step led here
    leave: Floats  # one step leads from here to all that follows
    sums: Floats  # noise, gap, level: logs

    def middle(self, first: int, second: int) -> Floats:
        """Noise, level: all between two gaps is at this level, scaled like the rest."""
        between = self.sums[:, second] - self.sums[:, first]
        scaled: Floats = np.exp(between - between.max(-1, keepdims=True))
        return scaled


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Chances that sum to 1: ``none + drift + one.sum() + two.sum()``."""

    none: float
    drift: float
    one: Floats  # by gap
    two: Floats  # by pair of gaps, upper triangle with the diagonal
    seen: Evidence
    grid: Lattice
    chain: Chain
    steps: Floats  # prior of a step between two levels
    one_noise: Floats  # noise, gap: the share of each noise within ``one``
    any_noise: Floats  # the share of each noise in all
    noise: float  # of one sample, as far as it hides a level
    strays: float  # of a candidate's own level, whatever its runs

    @property
    def gaps(self) -> int:
        return len(self.one)

    def ends(self, gap: int) -> tuple[int, int]:
        """The step is after the first and not after the second."""
        return int(self.seen.positions[gap]), int(self.seen.positions[gap + 1])

    @property
    def pairs(self) -> Floats:
        """For each two gaps the chance that both contain a step; 0 on the diagonal."""
        both: Floats = self.two + self.two.T
        np.fill_diagonal(both, 0.0)
        return both

    @property
    def stepped(self) -> Floats:
        """For each gap the chance that a step is in it."""
        chance: Floats = self.one + np.diag(self.two) + self.pairs.sum(axis=1)
        return chance


def weigh(seen: Evidence, line: Track, belief: Belief) -> Posterior:
    """At least two candidates were measured; the first and last of them are the ends."""
    seen = steadied(widened(seen))
    grid = lattice(seen, belief)
    steps = step_prior(grid, belief)
    moved = shifts(seen.machines, seen.doubts, grid.noise)
    seen = replace(seen, scales=seen.scales * moved.scales[seen.machines])
    tables, grid = log_likelihood(seen, grid, moved)
    tables = with_strays(tables, grid, belief.strays)
    chain = _chain(tables, steps)
    log_one = chain.log_scale + np.log(np.maximum(TINY, (chain.arrive * chain.after).sum(-1)))
    log_none = logsumexp(tables.sum(1), axis=-1)
    masses, pairs = _prior_masses(seen, line)
    prior = grid.log_prior - logsumexp(grid.log_prior)
    # between a few candidates a slope is as many steps, and one of them is asked for
    slope = belief.drift if seen.positions[-1] - seen.positions[0] >= SLOPE else 0.0
    with np.errstate(divide="ignore"):
        by_noise = {
            "none": np.log(belief.none) + prior + log_none,
            "one": np.log(belief.one * masses) + prior[:, None] + log_one,
            "two": np.log(belief.two * pairs) + prior[:, None, None] + _log_two(chain, log_one),
            "drift": np.log(slope) + prior + _log_drift(tables, seen, grid, belief),
        }
    return _normalised(by_noise, seen, grid, chain, steps, belief)


def _normalised(
    logs: dict[str, Floats],
    seen: Evidence,
    grid: Lattice,
    chain: Chain,
    steps: Floats,
    belief: Belief,
) -> Posterior:
    peak = max(float(table.max()) for table in logs.values())
    weights = {kind: np.exp(table - peak) for kind, table in logs.items()}
    total = sum(float(table.sum()) for table in weights.values())
    weights = {kind: table / total for kind, table in weights.items()}
    one = weights["one"].sum(0)
    by_noise = np.sum(
        [table.reshape(len(grid.noises), -1).sum(1) for table in weights.values()], axis=0
    )
    hides = grid.noises**2 * (grid.tails + 3) / (grid.tails + 1)
    return Posterior(
        none=float(weights["none"].sum()),
        drift=float(weights["drift"].sum()),
        one=one,
        two=weights["two"].sum(0),
        seen=seen,
        grid=grid,
        chain=chain,
        steps=steps,
        one_noise=weights["one"] / np.maximum(one, TINY),
        any_noise=by_noise,
        noise=float(np.sqrt(by_noise @ hides)),
        strays=belief.strays,
    )


def _chain(tables: Floats, steps: Floats) -> Chain:
    sums = np.cumsum(tables, axis=1)
    before, after = sums[:, :-1], sums[:, -1:] - sums[:, :-1]
    high, other = before.max(-1, keepdims=True), after.max(-1, keepdims=True)
    one, rest = np.exp(before - high), np.exp(after - other)
    return Chain(
        before=one,
        after=rest,
        log_scale=(high + other)[:, :, 0],
        arrive=one @ steps,
        leave=rest @ steps,
        sums=sums,
    )


def _log_two(chain: Chain, log_one: Floats) -> Floats:
    """A step in each of two gaps; two in one gap cannot be told from one."""
    gaps = log_one.shape[1]
    table = np.full((len(log_one), gaps, gaps), -np.inf)
    table[:, np.arange(gaps), np.arange(gaps)] = log_one
    scale_before = chain.sums[:, :-1].max(-1)
    scale_after = chain.log_scale - scale_before
    for first in range(gaps - 1):
        middle = chain.sums[:, first + 1 : -1] - chain.sums[:, first : first + 1]
        peak = middle.max(-1)
        parts = chain.arrive[:, first : first + 1] * np.exp(middle - peak[:, :, None])
        total = (parts * chain.leave[:, first + 1 :]).sum(-1)
        scale = scale_before[:, first : first + 1] + peak + scale_after[:, first + 1 :]
        table[:, first, first + 1 :] = scale + np.log(np.maximum(TINY, total))
    return table


def _log_drift(tables: Floats, seen: Evidence, grid: Lattice, belief: Belief) -> Floats:
    """From end to end in even paces; only a third candidate can tell it from a step."""
    first, last = seen.positions[0], seen.positions[-1]
    place = (seen.positions - first) / max(1, last - first)
    sizes = np.geomspace(belief.least_log, min(belief.most_log, 3.0), 12)
    levels = grid.levels
    found = []
    for size in np.concatenate([-sizes[::-1], sizes]):
        wanted = levels[:, None] + size * place[None, :]
        at = np.clip(np.searchsorted(levels, wanted), 0, len(levels) - 1)
        left = np.maximum(at - 1, 0)
        nearest = np.where(np.abs(levels[left] - wanted) < np.abs(levels[at] - wanted), left, at)
        # between two lattice points that are far apart no level is likely
        off = np.abs(levels[nearest] - wanted) > grid.width
        picked = tables[:, np.arange(len(place))[None, :], nearest].sum(-1)
        found.append(np.where(off.any(1), -np.inf, picked))
    return np.asarray(logsumexp(np.concatenate(found, axis=1), axis=1) - np.log(2 * len(sizes)))


def _prior_masses(seen: Evidence, line: Track) -> tuple[Floats, Floats]:
    """The share of one step in each gap, and of two steps in each pair of gaps."""
    masses = np.diff(line.sums[seen.positions])
    squares = np.diff(line.squares[seen.positions])
    total = max(TINY, float(masses.sum()))
    masses, squares = masses / total, squares / total**2
    pairs = 2 * np.triu(np.outer(masses, masses), 1)
    pairs[np.diag_indices(len(masses))] = np.maximum(0.0, masses**2 - squares)
    # with a single place for a step there are never two: that chance goes nowhere
    return masses, pairs / max(TINY, float(pairs.sum()))
