"""Where a median lies, said after every value and still true: a confidence sequence. Pure.

Each place m is tested by how many values lie above it, which is a fair coin if m is the median.
The even mixture of all bets on that coin is worth 2^n / ((n + 1) C(n, k)) after k of n values
above m: a test martingale. So by Ville's inequality the true median is excluded with a
probability of at most 1 - level, however often one looks. The noise may have any shape: strays
and two modes widen the interval, and do not mislead it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)


def median_interval(values: Sequence[float], level: float) -> Interval:
    """``EVERYTHING`` while there are too few values."""
    ordered, count = sorted(values), len(values)
    fewest = next((k for k in range(count // 2 + 1) if _wealth(k, count) < 1 / (1 - level)), 0)
    return (ordered[fewest - 1], ordered[count - fewest]) if fewest else EVERYTHING


def _wealth(above: int, count: int) -> float:
    """What the bets have made of 1."""
    return 2.0**count / ((count + 1) * math.comb(count, above))
