"""By how much each metric varies where a row was measured against itself, and what that hides."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from pydantic import Field
from scipy.special import nctdtrinc, stdtrit

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import METRICS
from dsharness.model import Sample, Value
from dsresults.compare.comparison_table import pairs

PAIRS = 10  # of 20 runs
CONFIDENCE = 0.95
POWER = 0.8
MAD_TO_SD = 1.4826  # of a normal distribution


class MetricNoise(Value):
    """One metric of a row that was measured against itself."""

    metric: str
    unit: str
    runs: int
    mean: float
    cv_pct: float | None = Field(description="standard deviation over mean; None: the mean is 0")
    robust_cv_pct: float | None = Field(description="the same by medians: odd runs count little")
    pairs: int
    pair_sd: float | None = Field(description="of the logarithm of a pair's ratio; None: one pair")
    smallest_pct: float | None = Field(description="that 20 runs would show, by how many % worse")
    smallest: float | None = Field(description="the same, in the metric's unit")


def smallest_change(pair_sd: float, number: int = PAIRS) -> float:
    """The ratio that so many pairs of runs show with 95 % confidence in 80 % of all tries.

    A paired Student test of the logarithms: with n pairs whose log ratios vary by s, a change of
    log d is found when |mean| > t * s / sqrt(n), where t is Student's 97.5 % point of n - 1
    degrees of freedom. The mean over s / sqrt(n) has a noncentral Student distribution with the
    noncentrality c = d * sqrt(n) / s. The c with which it exceeds t in 80 % of all tries solves
    F(t; n - 1, c) = 20 %, and the ratio is exp(c * s / sqrt(n)).
    """
    freedom = number - 1
    limit = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    noncentrality = float(nctdtrinc(freedom, 1 - POWER, limit))
    return math.exp(noncentrality * pair_sd / math.sqrt(number))


def noise_of(first: Sequence[Sample], second: Sequence[Sample]) -> tuple[MetricNoise, ...]:
    """Every metric that these valid runs of one row give, apart from those of a server's start.

    The servers stay the same from turn to turn, so a start's own values are one reading each.
    """
    metrics = [metric for metric in METRICS.values() if not metric.of_start]
    noises = (_noise(metric, first, second) for metric in metrics)
    return tuple(noise for noise in noises if noise is not None)


def _noise(metric: Metric, first: Sequence[Sample], second: Sequence[Sample]) -> MetricNoise | None:
    runs = metric.telling(sample for sample in (*first, *second) if sample.valid)
    values = [value for sample in runs if (value := sample.value(metric.name)) is not None]
    if len(values) < 2:
        return None
    logs = [
        math.log(first_slowness / second_slowness)
        for a, b in pairs(metric.telling(first), metric.telling(second))
        if (first_slowness := metric.slowness(a)) and (second_slowness := metric.slowness(b))
    ]
    mean, middle = statistics.fmean(values), statistics.median(values)
    stray = statistics.median(abs(value - middle) for value in values)
    sd = statistics.stdev(logs) if len(logs) > 1 else None
    ratio = smallest_change(sd) if sd is not None else None
    return MetricNoise(
        metric=metric.name,
        unit=metric.unit,
        runs=len(values),
        mean=mean,
        cv_pct=100 * statistics.stdev(values) / abs(mean) if mean else None,
        robust_cv_pct=100 * MAD_TO_SD * stray / abs(middle) if middle else None,
        pairs=len(logs),
        pair_sd=sd,
        smallest_pct=100 * (ratio - 1) if ratio is not None and metric.floor is None else None,
        smallest=abs(metric.at_slowness(mean, ratio) - mean) if ratio is not None else None,
    )
