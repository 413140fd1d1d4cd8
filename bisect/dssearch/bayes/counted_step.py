"""Both sides of a step in what an operation takes, as counts. Core pure logic, no I/O.

A search works with logs, so it adds to a count what is no difference yet. A reader wants to know
how many there are: nothing is added here, and there is no factor from none to some.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from dsharness.measure.metric import Metric
from dsharness.model import Counts, Sample
from dssearch.bayes.answer_figures import sides
from dssearch.bayes.belief import Beliefs
from dssearch.bayes.posterior import Posterior
from dssearch.bayes.track import Floats, Ints

SHOWN = 100  # parts of what is added: less is none


@dataclass(frozen=True, kw_only=True)
class Side:
    """The mean of the runs on one side, and half of its interval."""

    mean: float
    half: float

    @property
    def interval(self) -> tuple[float, float]:
        return self.mean - self.half, self.mean + self.half


def counted_step(beliefs: Beliefs, gap: int, level: float) -> Counts | None:
    """Return those of the step in that gap; None where the metric that decided does not count."""
    if beliefs.decider.floor is None:
        return None
    low, high = beliefs.posterior.ends(gap)
    return counted_between(beliefs, low, high, level)


def counted_between(
    beliefs: Beliefs, low: int, high: int, level: float, *, lasts: bool = True
) -> Counts | None:
    """Return the same of a step between two places of the line, to the next steps on both sides.

    One that does not last ends with its candidate.
    """
    metric, posterior = beliefs.decider, beliefs.posterior
    if metric.floor is None:
        return None
    before, after = sides(beliefs, low, high)
    after = after if lasts else after[after == high]
    return _counts(metric, _runs(beliefs, before), _runs(beliefs, after), level, posterior)


def _runs(beliefs: Beliefs, positions: Ints) -> list[list[Sample]]:
    """Return the usable ones of each candidate."""
    groups = (beliefs.history.of(beliefs.line.names[position]) for position in positions)
    return [[sample for sample in group if sample.valid] for group in groups]


def _counts(
    metric: Metric,
    before: Sequence[Sequence[Sample]],
    after: Sequence[Sequence[Sample]],
    level: float,
    posterior: Posterior,
) -> Counts:
    """Return what both sides count, with intervals; runs come by candidate.

    The noise of one run is the same part of a count, with what is added to it, on both sides.
    """
    floor = metric.floor or 0.0
    groups = [_values(metric, runs) for runs in (*before, *after)]
    freedom = sum(map(len, groups)) - len(groups)
    rests = np.concatenate(
        [(group - group.mean()) / (abs(group.mean()) + floor) for group in groups]
    )
    noise = math.sqrt(float(rests @ rests) / freedom) if freedom else posterior.noise
    reach = float(stdtrit(max(1, freedom), (1 + level) / 2))
    earlier, later = (
        _side(metric, groups[part], runs, reach * noise, posterior.scatter)
        for part, runs in ((slice(len(before)), before), (slice(len(before), None), after))
    )
    apart = math.hypot(earlier.half, later.half)
    differ = later.mean - earlier.mean
    return Counts(
        unit=metric.counts,
        before=_shown(earlier.mean, floor),
        after=_shown(later.mean, floor),
        before_interval=earlier.interval,
        after_interval=later.interval,
        difference_interval=(differ - apart, differ + apart),
    )


def _side(
    metric: Metric,
    groups: Sequence[Floats],
    runs: Sequence[Sequence[Sample]],
    noise: float,
    scatter: float,
) -> Side:
    values = np.concatenate(list(groups))
    mean = float(values.mean())
    size = abs(mean) + (metric.floor or 0.0)
    half = size * math.hypot(noise / math.sqrt(len(values)), 2 * scatter / math.sqrt(len(groups)))
    steps = [sample.metrics[metric.name].quantum for group in runs for sample in group]
    return Side(mean=mean, half=max(half, max(steps) / 2 / math.sqrt(len(steps))))


def _values(metric: Metric, runs: Sequence[Sample]) -> Floats:
    return np.array([sample.value(metric.name) for sample in runs], dtype=np.float64)


def _shown(value: float, floor: float) -> float:
    return 0.0 if abs(value) < floor / SHOWN else value
