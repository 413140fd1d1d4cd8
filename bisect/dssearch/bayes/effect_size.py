"""How large the step is. Core pure logic, no I/O.

The interval is that of the posterior, with equal chances on both sides. That it holds the truth as
often as its level says is measured by the benchmark, not derived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dssearch.bayes.posterior import Posterior, by_kind
from dssearch.bayes.track import TINY, Floats, Ints

LEAST = 1e-3  # pairs of steps less likely than this weigh nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class Effects:
    """Over the sizes a step may have: how much likelier the data made each."""

    sizes: Floats  # log of the ratio after / before
    prior: Floats
    posterior: Floats

    @property
    def gain(self) -> Floats:
        return self.posterior / np.maximum(TINY, self.prior)

    @property
    def middle(self) -> float:
        """The median ratio."""
        return math.exp(self._quantile(0.5))

    def interval(self, level: float) -> tuple[float, float]:
        half = 0.0 if len(self.sizes) < 2 else float(np.diff(self.sizes).min()) / 2
        low, high = self._quantile((1 - level) / 2), self._quantile((1 + level) / 2)
        return math.exp(low - half), math.exp(high + half)

    def _quantile(self, part: float) -> float:
        index = int(np.searchsorted(np.cumsum(self.posterior), part))
        return float(self.sizes[min(index, len(self.sizes) - 1)])


def effects(posterior: Posterior, gap: int | tuple[int, int] | None = None) -> Effects:
    """Return those of a step in that gap, alone or with another, or of a single one anywhere.

    Of two gaps: of a single step in one of them.
    """
    joint = _alone(posterior, np.atleast_1d(np.arange(posterior.gaps) if gap is None else gap))
    if isinstance(gap, int):
        joint += _with_another(posterior, gap)
    cells = np.outer(posterior.grid.cells, posterior.grid.cells)
    ticks, place = posterior.grid.differences
    prior = np.tensordot(posterior.scatter_prior, posterior.steps, 1) * cells
    after = np.bincount(place, weights=(joint * cells).ravel())
    # a size is met once from each level that it may begin at
    starts = np.bincount(place, weights=np.repeat(posterior.grid.cells, len(posterior.grid.cells)))
    before = np.bincount(place, weights=prior.ravel()) / starts
    possible = before > 0
    if not possible.any():  # the runs are so alike that no step has room between them
        return Effects(sizes=np.zeros(1), prior=np.ones(1), posterior=np.ones(1))
    return Effects(
        sizes=np.asarray(ticks[possible] * posterior.grid.width, dtype=np.float64),
        prior=np.asarray(before[possible], dtype=np.float64),
        posterior=after[possible] / max(TINY, after[possible].sum()),
    )


def _alone(posterior: Posterior, gaps: Ints) -> Floats:
    """Return how likely each two levels are before and after a step in one of these gaps."""
    weights, chain = posterior.one_way * posterior.one, posterior.chain
    likely = np.maximum(TINY, (chain.arrive * chain.after * posterior.grid.cells).sum(-1))
    joint = np.zeros(posterior.steps.shape[1:])
    for kind, ways in by_kind(posterior.kinds):
        for gap in gaps:
            scale = (weights[ways, gap] / likely[ways, gap])[:, None]
            part = (chain.before[ways, gap] * scale).T @ chain.after[ways, gap]
            joint += part * posterior.steps[kind]
    return joint


def _with_another(posterior: Posterior, gap: int) -> Floats:
    """Return the same where there is a second step in another gap."""
    chain, joint = posterior.chain, np.zeros(posterior.steps.shape[1:])
    cells = np.outer(posterior.grid.cells, posterior.grid.cells)
    for partner in range(posterior.gaps):
        first, second = min(gap, partner), max(gap, partner)
        chance = float(posterior.two[first, second])
        if partner == gap or chance < LEAST:
            continue
        middle = chain.middle(first, second)
        if gap == first:
            from_start, to_end = chain.before[:, gap], middle * chain.leave[:, second]
        else:
            from_start, to_end = chain.arrive[:, first] * middle, chain.after[:, gap]
        part = np.zeros_like(joint)
        for kind, ways in by_kind(posterior.kinds):
            led = (from_start[ways] * posterior.any_way[ways, None]).T @ to_end[ways]
            part += led * posterior.steps[kind]
        joint += chance * part / max(TINY, float((part * cells).sum()))
    return joint
