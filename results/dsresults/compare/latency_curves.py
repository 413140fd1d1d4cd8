"""How long operations took, as percentiles of all valid samples of a candidate together.

Next to each stands how far the samples differ. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from pydantic import Field

from dsharness.errors import InconclusiveError
from dsharness.model import Latencies, Sample, Value
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.number_text import milliseconds, significant
from dsresults.page.chart import (
    MOST_LINES,
    Chart,
    ChartLine,
    line_chart,
    log_axis,
    percent_axis,
    short_name,
)
from dsresults.page.page import UNKNOWN, Content, quiet

IN_TABLE = (50.0, 90.0, 99.0, 99.9)
STEPS = 10  # of a curve, for each further nine
NINES = 5
LATENESS = "the load itself"  # how late it noticed that operations were due
FEWEST_SLOWER = 5  # operations that took longer; below that a percentile is a matter of chance


class Percentile(Value):
    """The time that so many percent of the operations do not exceed."""

    percent: float
    us: float
    low_us: float | None = Field(
        default=None, description="the lowest of the samples; absent where one is too short"
    )
    high_us: float | None = None


def percentile_cell(percentile: Percentile | None) -> Content:
    """Return it in milliseconds, with the lowest and highest of the samples."""
    if percentile is None:
        return UNKNOWN
    middle = significant(percentile.us / 1000)
    if percentile.low_us is None or percentile.high_us is None:
        return middle
    low, high = (
        significant(bound_us / 1000) for bound_us in (percentile.low_us, percentile.high_us)
    )
    return (middle, quiet(f"{low} to {high}"))


class LatencyCurve(Value):
    """One kind of operation on one candidate."""

    candidate: str
    samples: int
    operations: int
    max_us: float
    unread: int = Field(default=0, description="samples whose histogram cannot be read")
    percentiles: tuple[Percentile, ...] = Field(
        description="as far as at least five operations took longer"
    )

    def at(self, percent: float) -> Percentile | None:
        """None where it has too few operations."""
        return next(
            (percentile for percentile in self.percentiles if percentile.percent == percent), None
        )


class OperationLatencies(Value):
    """One kind of operation of one workload, on all candidates that have its times."""

    campaign_id: str
    workload_id: str
    operation: str
    scheduled: bool = Field(description="timed from when an operation should have begun")
    since: str = Field(default="", description="what these times are, in words")
    curves: tuple[LatencyCurve, ...]


def latency_curves(
    comparison: ComparisonTable, samples: Sequence[Sample]
) -> tuple[OperationLatencies, ...]:
    """Of each workload's kinds of operations, in the order of the line."""
    return tuple(
        latencies
        for column in comparison.columns
        for latencies in _of_column(
            column,
            comparison.line,
            [
                sample
                for sample in samples
                if sample.campaign_id == column.campaign_id and sample.valid
            ],
        )
    )


def _of_column(
    column: Column, line: tuple[str, ...], samples: Sequence[Sample]
) -> Iterable[OperationLatencies]:
    latencies_by_sample = {sample.id: _told(sample) for sample in samples}
    for operation in dict.fromkeys(
        kind for latencies in latencies_by_sample.values() for kind in latencies
    ):
        timed_samples = [
            sample for sample in samples if operation in latencies_by_sample[sample.id]
        ]
        groups = ((name, [s for s in timed_samples if s.candidate_id == name]) for name in line)
        all_curves = [
            latency_curve(name, [latencies_by_sample[sample.id][operation] for sample in group])
            for name, group in groups
            if group
        ]
        if curves := tuple(curve for curve in all_curves if curve is not None):
            yield OperationLatencies(
                campaign_id=column.campaign_id,
                workload_id=column.workload_id,
                operation=operation,
                scheduled=timed_samples[0].scheduled and operation in timed_samples[0].latencies,
                since=_since(timed_samples[0], operation),
                curves=curves,
            )


def _since(sample: Sample, operation: str) -> str:
    if not sample.scheduled:
        return "from when an operation was sent: a closed loop asks less while the server is slow"
    if operation == LATENESS:
        return "from when an operation was due until the load noticed it"
    if operation in sample.steps:
        return "from when a request was sent; of the first one, from when its operation was due"
    if operation in sample.latencies:
        return "from when an operation should have begun"
    return "from when an operation was sent: before that it waited for a free connection"


def _told(sample: Sample) -> Mapping[str, Latencies]:
    """All histograms of a sample: of operations, and of their requests where these have names."""
    sent_latencies = {f"{kind} once sent": times for kind, times in sample.sent.items()}
    return {
        **sample.latencies,
        **sent_latencies,
        **sample.steps,
        **({LATENESS: sample.late} if sample.late else {}),
    }


def latency_curve(candidate: str, histograms: Sequence[Latencies]) -> LatencyCurve | None:
    """None where none of them has an operation; one of each sample."""
    parts = [_counts(histogram) for histogram in histograms]
    read = [Ranked(part) for part in parts if part]
    if not read:
        return None
    # Sums of counts: as exact as a merged histogram, and a fifth of its time.
    together = Ranked(sum((Counter(part) for part in parts if part), Counter()))
    return LatencyCurve(
        candidate=candidate,
        samples=len(read),
        operations=together.operations,
        max_us=together.times[-1],
        unread=sum(part is None for part in parts),
        percentiles=tuple(
            _percentile(percent, together, read)
            for percent in PERCENTS
            if together.slower(percent) >= FEWEST_SLOWER
        ),
    )


def _counts(times: Latencies) -> Mapping[int, int] | None:
    """None where it cannot be read: an import may hold anything, and a report leaves that out."""
    try:
        return times.counts
    except InconclusiveError:
        return None


def _percentile(percent: float, together: Ranked, parts: Sequence[Ranked]) -> Percentile:
    """The samples' lowest and highest enclose that of all: none of them is left out."""
    time_us = together.at(percent)
    if len(parts) < 2 or any(part.slower(percent) < 1 for part in parts):
        return Percentile(percent=percent, us=time_us)
    ends = [part.at(percent) for part in parts]
    return Percentile(percent=percent, us=time_us, low_us=min(ends), high_us=max(ends))


class Ranked:
    """Times in order, and how many operations took no longer than each."""

    def __init__(self, counts: Mapping[int, int]) -> None:
        self.times = sorted(counts)
        self._passed = list(accumulate(counts[time] for time in self.times))
        self.operations = self._passed[-1]

    def slower(self, percent: float) -> int:
        """How many whole operations lie above it."""
        millionths = round((100 - percent) * 1_000_000)  # whole, so that ranks are exact
        return self.operations * millionths // 100_000_000

    def at(self, percent: float) -> int:
        """The shortest time that at least so many percent do not exceed."""
        rank = max(1, self.operations - self.slower(percent))
        return self.times[bisect_left(self._passed, rank)]


EVEN = (round(100 - 100 * 10 ** (-step / STEPS), 6) for step in range(NINES * STEPS + 1))
PERCENTS = tuple(sorted({*EVEN, *IN_TABLE}))


def drawn_curves(
    comparison: ComparisonTable, latencies: OperationLatencies
) -> tuple[LatencyCurve, ...]:
    """Return those that are lines; of many, the ends of the line and both sides of its step."""
    curves = [curve for curve in latencies.curves if len(curve.percentiles) > 1]
    names = [curve.candidate for curve in curves]
    drawn_names = comparison.drawn(latencies.campaign_id, names, MOST_LINES)
    return tuple(curve for curve in curves if curve.candidate in drawn_names)


def percentile_chart(latencies: OperationLatencies, curves: Sequence[LatencyCurve]) -> Chart | None:
    """Return latency (log axis) over the percentile (axis of nines); None without a curve."""
    if not curves:
        return None
    reached = [percentile for curve in curves for percentile in curve.percentiles]
    times = [time_us for p in reached for time_us in (p.us, p.low_us, p.high_us) if time_us]
    return line_chart(
        title=f"Latency of {latencies.operation} by percentile, {latencies.workload_id}",
        caption=f"{latencies.workload_id}, {latencies.operation}",
        across=percent_axis(max(percentile.percent for percentile in reached)),
        up=log_axis(times, lambda time_us: f"{time_us / 1000:g} ms"),
        lines=[_chart_line(curve, number) for number, curve in enumerate(curves)],
    )


def _chart_line(curve: LatencyCurve, number: int) -> ChartLine:
    """Its band goes along the highest of the samples, and back along the lowest."""
    bounds = [(p.percent, p.low_us, p.high_us) for p in curve.percentiles]
    return ChartLine(
        name=short_name(curve.candidate),
        title=f"{curve.candidate}: {_curve_words(curve)}",
        points=[(percentile.percent, percentile.us) for percentile in curve.percentiles],
        band=[
            *((percent, high) for percent, _, high in bounds if high),
            *((percent, low) for percent, low, _ in reversed(bounds) if low),
        ],
        pattern=number,
    )


def _curve_words(curve: LatencyCurve) -> str:
    percentiles = ((percent, curve.at(percent)) for percent in (50.0, 99.0))
    phrases = [
        f"{percent:g} % within {milliseconds(percentile.us)}"
        for percent, percentile in percentiles
        if percentile
    ]
    return ", ".join((*phrases, f"longest {milliseconds(curve.max_us)}"))
