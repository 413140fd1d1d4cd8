"""Paired comparison of two candidates: how many times as much one costs as the other. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import stdtrit

from dsharness.measure.metrics import Metric
from dsharness.model import Sample

CONFIDENCE = 0.99
POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its interval; ``pairs`` is the number of pairs."""

    value: float
    low: float
    high: float
    pairs: int

    @property
    def differs(self) -> bool:
        return self.low > 1.0 or self.high < 1.0

    def inverse(self) -> Ratio:
        low = 1 / self.high if self.high else math.inf
        high = 1 / self.low if self.low else math.inf
        return Ratio(value=1 / self.value, low=low, high=high, pairs=self.pairs)

    @property
    def interval(self) -> tuple[float, float]:
        return (self.low, self.high)

    @property
    def smallest_visible_pct(self) -> float:
        """The smallest slowdown that as many equally noisy pairs would have shown (power 80 %)."""
        if self.pairs < 2:
            return math.inf
        quantile = _student(self.pairs - 1, (1 + CONFIDENCE) / 2)
        error = (math.log(self.high) - math.log(self.low)) / 2 / quantile
        return 100 * math.expm1((quantile + _student(self.pairs - 1, POWER)) * error)


def pairs(
    samples: Sequence[Sample], references: Sequence[Sample]
) -> tuple[tuple[Sample, Sample], ...]:
    """Valid samples of the same turn; a pair is never split over two machines."""
    by_turn = {(sample.turn, sample.machine.id): sample for sample in references if sample.valid}
    found = []
    for sample in samples:
        reference = by_turn.get((sample.turn, sample.machine.id))
        if sample.valid and reference is not None:
            found.append((sample, reference))
    return tuple(found)


def compare(couples: Iterable[tuple[float, float]]) -> Ratio | None:
    """The geometric mean of the ratios with a Student interval; None without any pair."""
    logs = [math.log(value / reference) for value, reference in couples]
    if not logs:
        return None
    mean = statistics.fmean(logs)
    if len(logs) < 2:
        return Ratio(value=math.exp(mean), low=0.0, high=math.inf, pairs=len(logs))
    quantile = _student(len(logs) - 1, (1 + CONFIDENCE) / 2)
    squares = math.fsum((each - mean) ** 2 for each in logs)
    half = quantile * math.sqrt(squares / (len(logs) - 1) / len(logs))
    return Ratio(
        value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), pairs=len(logs)
    )


def compare_by(
    metric: Metric, samples: Sequence[Sample], references: Sequence[Sample]
) -> Ratio | None:
    """How many times slower the samples are than their references."""
    found = pairs(samples, references)
    values = ((metric.slowness(one), metric.slowness(other)) for one, other in found)
    return compare((one, other) for one, other in values if one and other)


def grouped(samples: Iterable[Sample]) -> Mapping[str, tuple[Sample, ...]]:
    """Samples by candidate, in the order they came."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.candidate_id, []).append(sample)
    return {candidate: tuple(group) for candidate, group in groups.items()}


def _student(degrees: int, probability: float) -> float:
    return float(stdtrit(degrees, probability))
