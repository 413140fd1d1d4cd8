"""How what an operation takes grows with the size of a directory. Pure.

Between two sizes a metric grows as a power of the size: its exponent is 0 where the size does not
matter, and 1 where ten times as many users make it ten times as much.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.model import Sample, Value
from dsresults.compare import student
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.load_levels import unusable
from dsresults.number_text import signed, times, whole

SURE = 0.95
FEWEST_SIZES = 2
SMALLEST = 1.1  # over all sizes: what is less is no difference between two rows
RULE = (
    "The exponent is the slope of the straight line through the logarithms, each size counting the "
    f"same, with its interval at {100 * SURE:g} %, from how the runs of a size differ. A row grows "
    "more than another where the interval of their difference leaves out 0, and where that makes "
    f"{100 * (SMALLEST - 1):.0f} % or more over all sizes."
)


class SizePoint(Value):
    """One row on a directory of one size."""

    users: int
    runs: int = Field(default=0, description="valid ones with this metric")
    value: float | None = Field(default=None, description="the median of the runs")
    low: float | None = None
    high: float | None = None
    exponent: Estimate | None = Field(default=None, description="from the size before to this one")
    note: str = Field(default="", description="why there is no value")


class RowGrowth(Value):
    """One row over all sizes."""

    row: str
    points: tuple[SizePoint, ...]
    exponent: Estimate | None = Field(description="over all sizes; absent: fewer than two have one")
    more: Estimate | None = Field(
        default=None, description="its exponent less that of the first row"
    )
    grows_more: bool | None = Field(
        default=None, description="than the first row; false: it grows less; absent: neither"
    )

    @property
    def known(self) -> tuple[SizePoint, ...]:
        return tuple(each for each in self.points if each.value is not None)

    @property
    def times(self) -> float:
        """From the smallest to the largest size that have a value."""
        first, last = self.known[0].value or 1.0, self.known[-1].value or 1.0
        return last / first


class SizeGrowth(Value):
    """All rows with the same load on directories of several sizes."""

    workload_id: str
    title: str
    metric: str
    asked_runs: int = Field(description="valid ones of each row and size")
    rule: str = RULE
    measured_from: str
    measured_until: str
    rows: tuple[RowGrowth, ...]

    @property
    def inconclusive(self) -> bool:
        """Whether a row has no value at a size."""
        return any(each.value is None for row in self.rows for each in row.points)


def grown(
    metric: Metric,
    rows: Sequence[str],
    taken: Mapping[int, Sequence[Sample]],
    failed: Mapping[int, Mapping[str, str]],
) -> tuple[RowGrowth, ...]:
    """Each row by its samples of each size; the others are compared with the first.

    ``failed`` says of a size why a row could not be made with it.
    """
    logs = {row: _logs(metric, row, taken) for row in rows}
    found = []
    for row in rows:
        unmade = {users: why[row] for users, why in failed.items() if row in why}
        found.append(_row(metric, row, taken, unmade, logs[row], logs[rows[0]]))
    return tuple(found)


def _logs(
    metric: Metric, row: str, taken: Mapping[int, Sequence[Sample]]
) -> dict[int, tuple[float, ...]]:
    """The logarithms of all usable runs, by size; a size without one is absent."""
    found = {
        users: tuple(
            math.log(value)
            for sample in metric.telling(each for each in samples if each.valid)
            if sample.candidate_id == row and (value := sample.value(metric.name) or 0.0) > 0
        )
        for users, samples in sorted(taken.items())
    }
    return {users: values for users, values in found.items() if values}


def _row(
    metric: Metric,
    row: str,
    taken: Mapping[int, Sequence[Sample]],
    unmade: Mapping[int, str],
    logs: Mapping[int, tuple[float, ...]],
    first: Mapping[int, tuple[float, ...]],
) -> RowGrowth:
    steps = {
        users: exponent_of({each: logs[each] for each in (before, users)})
        for before, users in pairwise(logs)
    }
    both = logs.keys() & first.keys()
    compared = logs is not first and len(both) >= FEWEST_SIZES
    more = _difference(logs, first, sorted(both)) if compared else None
    return RowGrowth(
        row=row,
        points=tuple(
            _point(users, logs[users], steps.get(users))
            if users in logs
            else SizePoint(
                users=users, note=unmade.get(users) or _why_none(metric, row, taken[users])
            )
            for users in sorted(taken)
        ),
        exponent=exponent_of(logs) if len(logs) >= FEWEST_SIZES else None,
        more=more,
        grows_more=_verdict(more, max(both) / min(both)) if more else None,
    )


def _point(users: int, logs: Sequence[float], exponent: Estimate | None) -> SizePoint:
    return SizePoint(
        users=users,
        runs=len(logs),
        value=math.exp(statistics.median(logs)),
        low=math.exp(min(logs)),
        high=math.exp(max(logs)),
        exponent=exponent,
    )


def _why_none(metric: Metric, row: str, samples: Sequence[Sample]) -> str:
    own = [each for each in samples if each.candidate_id == row]
    if any(each.valid for each in own):
        return f"no run has a {metric.heading} above 0 that says something of the server"
    return unusable(own)


def _weights(sizes: Sequence[int]) -> dict[int, float]:
    """What each size's mean counts in the slope of the line through them."""
    logs = {users: math.log(users) for users in sizes}
    middle = statistics.fmean(logs.values())
    square = math.fsum((each - middle) ** 2 for each in logs.values())
    return {users: (each - middle) / square for users, each in logs.items()}


def exponent_of(logs: Mapping[int, Sequence[float]]) -> Estimate:
    """The slope of the logarithms of at least two sizes over those of the sizes."""
    return _sum_of_means([(weight, logs[users]) for users, weight in _weights(list(logs)).items()])


def _difference(
    logs: Mapping[int, Sequence[float]], first: Mapping[int, Sequence[float]], sizes: Sequence[int]
) -> Estimate:
    """One exponent less another, of the sizes that both have."""
    weights = _weights(sizes).items()
    return _sum_of_means(
        [(weight, logs[users]) for users, weight in weights]
        + [(-weight, first[users]) for users, weight in weights]
    )


def _sum_of_means(parts: Sequence[tuple[float, Sequence[float]]]) -> Estimate:
    """Means of groups, each times its weight, with Welch's interval; none if a group has one."""
    value = math.fsum(weight * statistics.fmean(group) for weight, group in parts)
    if any(weight and len(group) < 2 for weight, group in parts):
        return Estimate(value=value)
    spreads = [
        (weight**2 * statistics.variance(group) / len(group), len(group) - 1)
        for weight, group in parts
        if weight
    ]
    spread = math.fsum(each for each, _ in spreads)
    if not spread:
        return Estimate(value=value, interval=(value, value))
    freedom = 1 / math.fsum((each / spread) ** 2 / free for each, free in spreads)
    half = student.reach(SURE, max(1, math.floor(freedom))) * math.sqrt(spread)
    return Estimate(value=value, interval=(value - half, value + half))


def _verdict(more: Estimate, span: float) -> bool | None:
    """Whether it grows more (true) or less (false) by as much as counts."""
    low, high = more.interval or (-math.inf, math.inf)
    if low <= 0 <= high or abs(more.value) * math.log(span) < math.log(SMALLEST):
        return None
    return more.value > 0


def told_growth(found: SizeGrowth, metric: Metric) -> Iterator[str]:
    """A sentence for each row."""
    for row in found.rows:
        if row.exponent is None:
            yield f"{row.row}: not known: fewer than two sizes have a {metric.heading}"
            continue
        first, last = (whole(each.users) for each in (row.known[0], row.known[-1]))
        yield (
            f"{row.row}: {metric.heading} grows as size to the power {spelled(row.exponent)}: "
            f"{times(row.times)} from {first} to {last} users{_compared(row, found.rows[0])}"
        )


def _compared(row: RowGrowth, first: RowGrowth) -> str:
    if row.more is None:
        return ""
    if row.grows_more is None:
        return f"; no difference from {first.row} is shown: {spelled(row.more)}"
    return f"; {'more' if row.grows_more else 'less'} than {first.row}, by {spelled(row.more)}"


def spelled(exponent: Estimate) -> str:
    """``0.98 (0.95 to 1.01)``."""
    if exponent.interval is None:
        return signed(exponent.value)
    low, high = map(signed, exponent.interval)
    return f"{signed(exponent.value)} ({low} to {high})"
