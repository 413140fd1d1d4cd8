"""How many times slower candidates are than a reference, from the pairs they ran in. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from scipy.special import stdtrit

from dsharness.measure.metrics import Metric
from dsharness.model import Sample
from dsresults.compare.comparison_table import Estimate

CONFIDENCE = 0.99
USUAL = 0.15  # the log of a ratio strays by this much from pair to pair (docs/verdicts.md)
USUAL_PAIRS = 4  # and this counts as so many pairs more than one


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


def ratios(
    metric: Metric, groups: Mapping[str, Sequence[Sample]], references: Sequence[Sample]
) -> dict[str, Estimate]:
    """Of every candidate that shared a turn with the reference.

    The geometric mean of its pairs with a Student interval. A search takes few pairs of each
    candidate, so how far a pair strays is estimated from all of them together.
    """
    logs = {name: _logs(metric, samples, references) for name, samples in groups.items()}
    logs = {name: each for name, each in logs.items() if each}
    means = {name: statistics.fmean(each) for name, each in logs.items()}
    square = math.fsum((log - means[name]) ** 2 for name, each in logs.items() for log in each)
    freedom = USUAL_PAIRS + sum(len(each) - 1 for each in logs.values() if any(each))
    stray = math.sqrt((USUAL_PAIRS * USUAL**2 + square) / freedom)
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * stray
    return {
        name: _estimate(mean, reach / math.sqrt(len(logs[name]))) for name, mean in means.items()
    }


def _estimate(mean: float, half: float) -> Estimate:
    half = half if mean else 0.0  # the reference itself
    return Estimate(value=math.exp(mean), interval=(math.exp(mean - half), math.exp(mean + half)))


def _logs(metric: Metric, samples: Sequence[Sample], references: Sequence[Sample]) -> list[float]:
    couples = pairs(samples, references)
    values = ((metric.slowness(one), metric.slowness(other)) for one, other in couples)
    return [math.log(one / other) for one, other in values if one and other]
