"""Where a ramp begins and ends, and what would tell it better. Core pure logic, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsbisect.search.bayes.posterior import Posterior
from dsbisect.search.bayes.track import TINY, Floats, Ints

PLACES = (1 / 6, 1 / 2, 5 / 6)  # of a start or an end within its gap
HALF = 0.5  # of the range must lie on the ramp, and of the ramp in the range
DOUBT = (0.1, 0.9)


@dataclass(frozen=True, kw_only=True)
class RampRange:
    """Positions of the first and the last of the many steps."""

    first: int
    last: int
    chance: float  # that half of the range lies on the ramp, and half of the ramp in the range
    vague: tuple[int, int]  # positions between which the less certain end lies


def ramp_range(found: Posterior) -> RampRange:
    """The medians of start and end; (10) for their chances."""
    starts, ends, weights = _points(found)
    first, last = _quantile(starts, weights, 0.5), _quantile(ends, weights, 0.5)
    common = np.minimum(ends, last) - np.maximum(starts, first) + 1
    longest = np.maximum(ends - starts, last - first) + 1
    vague = max(
        (tuple(_quantile(points, weights, part) for part in DOUBT) for points in (starts, ends)),
        key=lambda each: each[1] - each[0],
    )
    return RampRange(
        first=first,
        last=max(first + 1, last),
        chance=float(weights[common >= HALF * longest].sum()),
        vague=(vague[0], vague[1]),
    )


def _points(found: Posterior) -> tuple[Ints, Ints, Floats]:
    """Starts and ends with their chances."""
    low, high = found.seen.positions[:-1], found.seen.positions[1:]
    places = low[:, None] + 1 + np.rint(np.outer(high - low - 1, PLACES)).astype(np.int64)
    gaps, count = len(low), len(PLACES)
    shape = (gaps, count, gaps, count)
    starts = np.broadcast_to(places[:, :, None, None], shape).ravel()
    ends = np.broadcast_to(places[None, None, :, :], shape).ravel()
    each = np.broadcast_to(found.ramps[:, None, :, None], shape).ravel()
    weights = np.where(ends > starts, each, 0.0)
    return starts, ends, weights / max(TINY, float(weights.sum()))


def _quantile(points: Ints, weights: Floats, part: float) -> int:
    order = np.argsort(points, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[order]), part))
    return int(points[order[min(at, len(points) - 1)]])
