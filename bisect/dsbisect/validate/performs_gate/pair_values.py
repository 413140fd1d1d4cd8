"""What the pairs of a metric say: how much worse the patched side is. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from dsbisect.validate.performs_gate.margin import LEVEL, Comparison
from dsbisect.validate.performs_gate.median_interval import median_interval
from dsharness.measure.metrics import Metric
from dsharness.model import Sample

Pairs = Sequence[tuple[Sample, Sample]]  # (patched, stock)


def slower_pct(metric: Metric, pairs: Pairs) -> tuple[float, ...]:
    """By how many per cent the patched side of each pair is slower; below 0 is faster."""
    both = ((metric.slowness(one), metric.slowness(other)) for one, other in pairs)
    return tuple(100 * (one / other - 1) for one, other in both if one and other)


def compared(values: Sequence[float], margin: float) -> Comparison:
    return Comparison(interval=median_interval(values, LEVEL), margin=margin)


def middle(samples: Sequence[Sample], metric: Metric) -> float:
    """The median of what was measured; not a number where nothing was."""
    known = [value for each in samples if (value := each.value(metric.name)) is not None]
    return statistics.median(known) if known else math.nan
