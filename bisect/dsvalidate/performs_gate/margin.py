"""Whether the patched side is worse than the stock one by more than a margin. Pure.

Where the median lies can be said after every value and is still true: a confidence sequence. Each
place m is tested by how many values lie above it, which is a fair coin if m is the median. The even
mixture of all bets on that coin is worth 2^n / ((n + 1) C(n, k)) after k of n values above m: a
test martingale. So by Ville's inequality the true median is excluded with a probability of at most
1 - level, however often one looks. The noise may have any shape: strays and two modes widen the
interval, and do not mislead it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dsharness.measure.metric import Metric
from dsharness.model import Sample
from dsresults.number_text import significant

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)


def median_interval(values: Sequence[float], level: float) -> Interval:
    """Return where the median lies; ``EVERYTHING`` while there are too few values."""
    ordered, count = sorted(values), len(values)
    fewest = next((k for k in range(count // 2 + 1) if _wealth(k, count) < 1 / (1 - level)), 0)
    return (ordered[fewest - 1], ordered[count - fewest]) if fewest else EVERYTHING


def _wealth(above: int, count: int) -> float:
    """Return what all bets together have made of a stake of 1."""
    return 2.0**count / ((count + 1) * math.comb(count, above))


LEVEL = 0.95  # of each interval, at every look

Word = Literal["better", "same", "not worse", "worse", "undecided"]


@dataclass(frozen=True, kw_only=True)
class MarginTest:
    """How much worse, as an interval in units of the margin: per cent, or the metric's own."""

    interval: Interval
    margin: float

    @property
    def word(self) -> Word:
        low, high = self.interval
        if low > self.margin:
            return "worse"
        if high < -self.margin:
            return "better"
        if high < self.margin:
            return "same" if low > -self.margin else "not worse"
        return "undecided"

    @property
    def decided(self) -> bool:
        return self.word != "undecided"


def change_text(interval: tuple[float, float]) -> str:
    """An interval of per cent: "1.2 to 3.4 % slower", "2.1 times slower to 2.2 times slower"."""
    low, high = interval
    if math.isinf(low) or math.isinf(high):
        return "not yet known"
    if low > 0 or high < 0:
        near, far = sorted((abs(low), abs(high)))
        word = "slower" if low > 0 else "faster"
        if far >= 100 and low > 0:
            return f"{_times(low)} to {_times(high)} times as slow"
        if word == "faster" and far >= 50:
            return f"{_times_faster(high)} to {_times_faster(low)} times as fast"
        return f"{significant(near)} to {significant(far)} % {word}"
    return f"{significant(-low)} % faster to {significant(high)} % slower"


def verdict_text(comparison: MarginTest) -> str:
    margin = f"{comparison.margin:g} %"
    return {
        "worse": f"slower by more than {margin}",
        "better": f"faster by more than {margin}",
        "same": f"the same within {margin}",
        "not worse": f"not slower by {margin} or more",
        "undecided": f"not decided at a margin of {margin}",
    }[comparison.word]


def _times(pct: float) -> str:
    return significant(1 + pct / 100)


def _times_faster(pct: float) -> str:
    return significant(1 / (1 + pct / 100))


Pairs = Sequence[tuple[Sample, Sample]]  # (patched, stock)


def slower_pct(metric: Metric, pairs: Pairs) -> tuple[float, ...]:
    """By how many per cent the patched side of each pair is slower; below 0 is faster."""
    slownesses = ((metric.slowness(patched), metric.slowness(stock)) for patched, stock in pairs)
    return tuple(100 * (patched / stock - 1) for patched, stock in slownesses if patched and stock)


def compared(values: Sequence[float], margin: float) -> MarginTest:
    return MarginTest(interval=median_interval(values, LEVEL), margin=margin)


def middle(samples: Sequence[Sample], metric: Metric) -> float:
    """The median of what was measured; not a number where nothing was."""
    values = [value for sample in samples if (value := sample.value(metric.name)) is not None]
    return statistics.median(values) if values else math.nan
