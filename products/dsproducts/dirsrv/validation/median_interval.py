"""Where the median lies can be said after every value and is still true: a confidence sequence.

Each place m is tested by how many values lie above it, which is a fair coin if m is the median. The
even mixture of all bets on that coin is worth 2^n / ((n + 1) C(n, k)) after k of n values above m:
a test martingale. So by Ville's inequality the true median is excluded with a probability of at
most 1 - level, however often one looks. The noise may have any shape: strays and two modes widen
the interval, and do not mislead it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsresults.number_text import significant

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)
LEVEL = 0.95  # of each interval, at every look


def median_interval(values: Sequence[float], level: float) -> Interval:
    """Return where the median lies; ``EVERYTHING`` while there are too few values."""
    ordered, count = sorted(values), len(values)
    fewest = next((k for k in range(count // 2 + 1) if _wealth(k, count) < 1 / (1 - level)), 0)
    return (ordered[fewest - 1], ordered[count - fewest]) if fewest else EVERYTHING


def _wealth(above: int, count: int) -> float:
    """Return what all bets together have made of a stake of 1."""
    return 2.0**count / ((count + 1) * math.comb(count, above))


def change_text(interval: Interval) -> str:
    """An interval of per cent: "1.2 to 3.4 % slower", "2.1 times slower to 2.2 times slower"."""
    low, high = interval
    if math.isinf(low) or math.isinf(high):
        return "not yet known"
    if low > 0 or high < 0:
        near, far = sorted((abs(low), abs(high)))
        if low > 0 and far >= 100:
            return f"{_times(low)} to {_times(high)} times as slow"
        if high < 0 and far >= 50:
            return f"{_times_faster(high)} to {_times_faster(low)} times as fast"
        return f"{significant(near)} to {significant(far)} % {'slower' if low > 0 else 'faster'}"
    return f"{significant(-low)} % faster to {significant(high)} % slower"


def _times(pct: float) -> str:
    return significant(1 + pct / 100)


def _times_faster(pct: float) -> str:
    return significant(1 / (1 + pct / 100))
