"""How what an operation takes grows with the size of a directory, and its page. Pure.

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
from dsharness.measure.metrics import METRICS
from dsharness.model import Sample, Value
from dsresults.compare import student
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.load_levels import unusable
from dsresults.number_text import measured_between, signed, significant, times, whole
from dsresults.page.chart import (
    MOST_LINES,
    Axis,
    Chart,
    ChartLine,
    line_chart,
    log_axis,
    short_name,
)
from dsresults.page.page import (
    UNKNOWN,
    Card,
    Content,
    Page,
    Section,
    Table,
    code,
    key,
    note,
)

SURE = 0.95
FEWEST_SIZES = 2
WIDE = 1.0  # an interval: then 0 and 1, no growth and growth in proportion, may both be true
SMALLEST = 1.1  # over all sizes: what is less is no difference between two rows
RULE = (
    "The exponent is the slope of the straight line through the logarithms, each size counting the "
    f"same, with its interval at {100 * SURE:g} %, from how the runs of a size differ. One "
    f"that holds 0 and is wider than {WIDE:g} tells nothing. A row grows more than another where "
    "the interval of their difference leaves out 0, and where that makes "
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
        return tuple(point for point in self.points if point.value is not None)

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
        """Whether a row has no value at a size, or too wide an exponent."""
        return any(
            tells_nothing(row.exponent) or any(point.value is None for point in row.points)
            for row in self.rows
        )

    @property
    def metric_shown(self) -> Metric:
        return METRICS[self.metric]

    def page(self) -> Page:
        chart, drawn_rows = growth_chart(self), self.drawn
        return Page(
            title=f"{self.workload_id} on directories of several sizes",
            heading=(code(self.workload_id), " on directories of several sizes"),
            about=(self.title, measured_between(self.measured_from, self.measured_until)),
            answer=[Card(headline=sentence) for sentence in growth_sentences(self)],
            parts=(
                *([chart] if chart else []),
                note(
                    "The line is of the medians, its band of the lowest and highest run; both "
                    "axes are logarithmic."
                ),
                *(
                    Section(
                        title=(key(drawn_rows.index(row) if row in drawn_rows else None), row.row),
                        parts=(_table(row, self.metric_shown),),
                    )
                    for row in self.rows
                ),
                self.rule,
                note(
                    f"At least {self.asked_runs} valid runs of each row and size were asked for. "
                    "Rows took turns at each size; sizes were measured one after the other, each "
                    "on a directory filled for it."
                ),
            ),
        )

    @property
    def drawn(self) -> list[RowGrowth]:
        """The rows with values at two sizes, as many as can be told apart."""
        return [row for row in self.rows if row.exponent][:MOST_LINES]


def grown(
    metric: Metric,
    rows: Sequence[str],
    samples_by_size: Mapping[int, Sequence[Sample]],
    failed: Mapping[int, Mapping[str, str]],
) -> tuple[RowGrowth, ...]:
    """Each row by its samples of each size; the others are compared with the first.

    ``failed`` says of a size why a row could not be made with it.
    """
    logs = {row: _logs(metric, row, samples_by_size) for row in rows}
    growth_rows = []
    for row in rows:
        unmade = {users: why[row] for users, why in failed.items() if row in why}
        growth_rows.append(_row(metric, row, samples_by_size, unmade, logs[row], logs[rows[0]]))
    return tuple(growth_rows)


def _logs(
    metric: Metric, row: str, samples_by_size: Mapping[int, Sequence[Sample]]
) -> dict[int, tuple[float, ...]]:
    """The logarithms of all usable runs, by size; a size without one is absent."""
    logs_by_size = {
        users: tuple(
            math.log(value)
            for sample in metric.telling(sample for sample in samples if sample.valid)
            if sample.candidate_id == row and (value := sample.value(metric.name) or 0.0) > 0
        )
        for users, samples in sorted(samples_by_size.items())
    }
    return {users: values for users, values in logs_by_size.items() if values}


def _row(
    metric: Metric,
    row: str,
    samples_by_size: Mapping[int, Sequence[Sample]],
    unmade: Mapping[int, str],
    logs: Mapping[int, tuple[float, ...]],
    first: Mapping[int, tuple[float, ...]],
) -> RowGrowth:
    steps = {
        users: exponent_of({size: logs[size] for size in (before, users)})
        for before, users in pairwise(logs)
    }
    common = logs.keys() & first.keys()
    compared = logs is not first and len(common) >= FEWEST_SIZES
    more = _difference(logs, first, sorted(common)) if compared else None
    return RowGrowth(
        row=row,
        points=tuple(
            _point(users, logs[users], steps.get(users))
            if users in logs
            else SizePoint(
                users=users,
                note=unmade.get(users) or _why_none(metric, row, samples_by_size[users]),
            )
            for users in sorted(samples_by_size)
        ),
        exponent=exponent_of(logs) if len(logs) >= FEWEST_SIZES else None,
        more=more,
        grows_more=_verdict(more, max(common) / min(common)) if more else None,
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
    own = [sample for sample in samples if sample.candidate_id == row]
    if any(sample.valid for sample in own):
        return f"no run has a {metric.heading} above 0 that says something of the server"
    return unusable(own)


def _weights(sizes: Sequence[int]) -> dict[int, float]:
    """What each size's mean counts in the slope of the line through them."""
    logs = {users: math.log(users) for users in sizes}
    middle = statistics.fmean(logs.values())
    square = math.fsum((log - middle) ** 2 for log in logs.values())
    return {users: (log - middle) / square for users, log in logs.items()}


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
    spread = math.fsum(square for square, _ in spreads)
    if not spread:
        return Estimate(value=value, interval=(value, value))
    freedom = 1 / math.fsum((square / spread) ** 2 / free for square, free in spreads)
    half = student.reach(SURE, max(1, math.floor(freedom))) * math.sqrt(spread)
    return Estimate(value=value, interval=(value - half, value + half))


def _verdict(more: Estimate, span: float) -> bool | None:
    """Whether it grows more (true) or less (false) by as much as counts."""
    low, high = more.interval or (-math.inf, math.inf)
    if low <= 0 <= high or abs(more.value) * math.log(span) < math.log(SMALLEST):
        return None
    return more.value > 0


def growth_sentences(growth: SizeGrowth) -> Iterator[str]:
    """Yield a sentence for each row."""
    heading = growth.metric_shown.heading
    for row in growth.rows:
        if row.exponent is None:
            yield f"{row.row}: not known: fewer than two sizes have a {heading}"
            continue
        if tells_nothing(row.exponent):
            yield (
                f"{row.row}: cannot tell how {heading} grows with size: to the power "
                f"{spelled(row.exponent)}; more runs (--runs) make that narrower"
            )
            continue
        first, last = (whole(point.users) for point in (row.known[0], row.known[-1]))
        yield (
            f"{row.row}: {heading} grows as size to the power {spelled(row.exponent)}: "
            f"{times(row.times)} from {first} to {last} users{_compared(row, growth.rows[0])}"
        )


def tells_nothing(exponent: Estimate | None) -> bool:
    """Whether no growth and growth in proportion fit the runs alike."""
    low, high = (exponent and exponent.interval) or (0.0, 0.0)
    return low <= 0 <= high and high - low > WIDE


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


def _table(row: RowGrowth, metric: Metric) -> Table:
    return Table(
        kind="figures-of-levels",
        caption=f"{metric.title} ({metric.unit})",
        columns=("users", "runs", "median", "lowest to highest", "exponent since", "note"),
        rows=[_line(point) for point in row.points],
    )


def _line(point: SizePoint) -> tuple[Content, ...]:
    users, runs = whole(point.users), str(point.runs)
    if point.value is None or point.low is None or point.high is None:
        return users, runs, UNKNOWN, UNKNOWN, UNKNOWN, point.note
    ends = f"{significant(point.low)} to {significant(point.high)}"
    since = spelled(point.exponent) if point.exponent else UNKNOWN
    return users, runs, significant(point.value), ends, since, point.note


def growth_chart(growth: SizeGrowth) -> Chart | None:
    """Return a line for each row, between two log axes; None where none has two sizes."""
    points = [point for row in growth.drawn for point in row.known]
    if not points:
        return None
    metric = growth.metric_shown
    sizes = sorted({point.users for point in points})
    across = log_axis(sizes, whole)
    return line_chart(
        title=f"{metric.heading} by size, {growth.workload_id}",
        description="; ".join(growth_sentences(growth)),
        caption=f"{growth.workload_id}, {metric.title} ({metric.unit}) by size",
        kind="levels",
        across=Axis(
            low=across.low,
            high=across.high,
            marks={users: whole(users) for users in sizes},
            title="users of the directory",
            bend=math.log,
        ),
        up=log_axis([end for p in points for end in (p.low, p.high) if end], significant),
        lines=[_chart_line(row, number, metric) for number, row in enumerate(growth.drawn)],
    )


def _chart_line(row: RowGrowth, number: int, metric: Metric) -> ChartLine:
    highs = [(point.users, point.high or 0.0) for point in row.known]
    lows = [(point.users, point.low or 0.0) for point in row.known]
    return ChartLine(
        name=short_name(row.row),
        title=f"{row.row}: {metric.heading} {significant(row.times)} times from the smallest to "
        "the largest size",
        points=[(point.users, point.value or 0.0) for point in row.known],
        band=[*highs, *reversed(lows)],
        pattern=number,
    )
