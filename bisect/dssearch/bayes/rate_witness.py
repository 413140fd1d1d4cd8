"""Whether the rate agrees with a difference in CPU time. Core pure logic, no I/O.

Only the rate shows locks and queues, but it is several times as noisy. So it is a separate
series with its own noise, and it is asked one question: does it contradict?
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.track import Flags, Floats, Ints

CLEAR = 2.58  # standard errors
PART = 0.5  # of the decider's difference: a witness that shows this much does not contradict
NOISE = 0.13  # of one run's rate, before any is known (docs/verdicts.md: 13 to 26 %)
MEDIAN = 1.25  # error of a median over that of a mean
NOISE_RUNS = 2.0  # and this counts as this many runs

Word = Literal["agrees", "cannot tell", "contradicts"]


@dataclass(frozen=True, kw_only=True)
class RateDifference:
    """A difference of logs with its standard error."""

    size: float
    error: float


def contradicts(decider: RateDifference, witness: RateDifference) -> bool:
    """(19): clearly different from the decider, and less than half of it."""
    along = witness.size * math.copysign(1.0, decider.size)
    apart = abs(decider.size) - along
    error = math.hypot(decider.error, witness.error)
    return along < PART * abs(decider.size) and apart > CLEAR * error


def word(decider: RateDifference, witness: RateDifference | None) -> Word:
    if witness is None:
        return "cannot tell"
    if contradicts(decider, witness):
        return "contradicts"
    along = witness.size * math.copysign(1.0, decider.size)
    return "agrees" if along > CLEAR * witness.error else "cannot tell"


def difference(seen: Evidence, before: Ints, after: Ints) -> RateDifference | None:
    """(18): of the runs of some candidates (positions) and of others; None without both."""
    places = seen.positions[seen.owner]
    first, second = np.isin(places, before), np.isin(places, after)
    if not first.any() or not second.any():
        return None
    noise = _noise(seen)
    weights = 1 / seen.scales**2
    error = MEDIAN * noise * math.sqrt(1 / weights[first].sum() + 1 / weights[second].sum())
    error = math.hypot(error, _offset_error(seen, first, second))
    size = float(np.median(seen.values[second]) - np.median(seen.values[first]))
    return RateDifference(size=size, error=error)


def _offset_error(seen: Evidence, first: Flags, second: Flags) -> float:
    """What the machines' offsets add, where both sides were not measured alike on each."""
    count = len(seen.doubts)
    before, after = (
        np.bincount(seen.machines[side], minlength=count) / side.sum() for side in (first, second)
    )
    return float(np.linalg.norm((after - before) * seen.doubts))


def _noise(seen: Evidence) -> float:
    """Of one run: from what the runs of each candidate differ by, and from what is usual."""
    rest: Floats = (seen.values - seen.middles[seen.owner]) / seen.scales
    freedom = len(rest) - len(seen.positions)
    square = NOISE_RUNS * NOISE**2 + float(rest @ rest)
    return math.sqrt(square / (NOISE_RUNS + max(0, freedom)))
