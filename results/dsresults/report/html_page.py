"""One self-contained page: no script, no request, every text escaped.

Charts are positions, by pure geometry; the template draws them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from dsharness.measure.metric import Metric, Words
from dsharness.measure.metrics import CLIENT_CPU, COST, CPU, LATENCY, LATENCY_P99, RATE
from dsharness.model import NO_DIFFERENCE, Boundary, Outcome, Sample, Value
from dsresults import number_text
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.compare.latency_curves import FEWEST_SLOWER, IN_TABLE
from dsresults.compare.self_checks import told
from dsresults.explainers import read_back, shown_columns
from dsresults.number_text import capital, figure, significant
from dsresults.profile_pair import FLAME_WIDTH, flame_graphs
from dsresults.report.percentile_chart import (
    PLOT,
    percentile_charts,
    round_values,
)
from dsresults.report.report_data import ReportData, repeat_command

WIDTH = 480
TOP, ROW, BOTTOM = 10, 60, 30


class Mark(Value):
    """One candidate: its dot, its interval, its samples, in drawing units."""

    candidate: str
    outcome: Outcome
    y: float
    x: float | None = None
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()
    label: str = ""


class Edge(Value):
    """Where it changes: above the first changed candidate, or a band over all that may be it."""

    y: float
    end_y: float  # differs where several candidates are suspected
    label: str


class Chart(Value):
    """What decided, on a log axis over the candidates of a line, for one workload."""

    workload_id: str
    title: str
    description: str
    height: float
    axis_y: float
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    edge: Edge | None = None


def charts(comparison: ComparisonTable, samples: Sequence[Sample]) -> tuple[Chart, ...]:
    """One chart for each workload, all with the same axis so that they can be compared."""
    ours = {
        column.campaign_id: [s for s in samples if s.campaign_id == column.campaign_id and s.valid]
        for column in comparison.columns
    }
    unit = _axis_unit(comparison.decider, [s for group in ours.values() for s in group])
    if unit is None:
        return ()
    values = {
        (column.campaign_id, candidate): [
            value * unit.factor
            for sample in ours[column.campaign_id]
            if sample.candidate_id == candidate and (value := sample.value(comparison.metric))
        ]
        for column in comparison.columns
        for candidate in comparison.line
    }
    known = [value for group in values.values() for value in group]
    if not known:
        return ()
    scale = Scale(low=min(known) / 1.5, high=max(known) * 1.5, shown=unit.shown)
    return tuple(_chart(comparison, column, values, scale) for column in comparison.columns)


@dataclass(frozen=True, kw_only=True)
class AxisUnit:
    """How values are shown: in which metric's unit, and times what."""

    shown: Metric
    factor: float = 1.0


def _axis_unit(decider: Metric, samples: Sequence[Sample]) -> AxisUnit | None:
    """Calibrated cost is shown as time at this machine's usual speed, if that is known."""
    if decider is not COST:
        return AxisUnit(shown=decider)
    speeds = [sample.calibrator_us for sample in samples if sample.calibrator_us]
    return AxisUnit(shown=CPU, factor=statistics.median(speeds)) if speeds else None


def _chart(
    comparison: ComparisonTable,
    column: Column,
    values: Mapping[tuple[str, str], list[float]],
    scale: Scale,
) -> Chart:
    of = {one: values[column.campaign_id, one] for one in comparison.line}
    reference = of.get(column.reference or "") or []
    base = statistics.geometric_mean(reference) if reference else None
    marks = tuple(
        _mark(column.observed_of(candidate), comparison.metric, of[candidate], base, scale, y)
        for y, candidate in ((TOP + ROW * (i + 0.5), c) for i, c in enumerate(comparison.line))
    )
    axis_y = TOP + ROW * len(comparison.line)
    found = column.boundary if column.boundary and column.boundary.found else None
    return Chart(
        workload_id=column.workload_id,
        title=f"{capital(scale.shown.title)}, {column.workload_id}",
        description="; ".join(
            f"{one.candidate}: {', '.join(dict.fromkeys((column.verdict_word(one), mark.label)))}"
            for one, mark in zip(column.observed, marks, strict=True)
        ),
        height=axis_y + BOTTOM,
        axis_y=axis_y,
        ticks=scale.ticks(),
        marks=marks,
        edge=_edge(comparison.line, found, comparison.decider.words),
    )


def _edge(line: tuple[str, ...], found: Boundary | None, words: Words) -> Edge | None:
    if found is None or found.before not in line or found.after not in line:
        return None
    begin, end = line.index(found.before) + 1, line.index(found.after)
    where = "from here on" if begin == end else "from somewhere here on"
    label = f"{words.said(found.direction)} {where}"
    return Edge(y=TOP + ROW * begin, end_y=TOP + ROW * end, label=label)


def _mark(
    observed: Observed, metric: str, dots: list[float], base: float | None, scale: Scale, y: float
) -> Mark:
    shown = scale.shown
    mark = Mark(
        candidate=observed.candidate,
        outcome=observed.outcome,
        y=y,
        dots=tuple(scale.x(value) for value in dots),
        label="not measured" if not dots else figure(shown, statistics.geometric_mean(dots)),
    )
    ratio = observed.ratios.get(metric)
    if not dots or ratio is None or base is None:
        return mark
    value = shown.at_slowness(base, ratio.value)
    ends = [shown.at_slowness(base, end) for end in ratio.interval or ()] or [value]
    return mark.model_copy(
        update={
            "x": scale.x(value),
            "low": scale.x(min(ends)),
            "high": scale.x(max(ends)),
            "label": figure(shown, value),
        }
    )


LEFT, RIGHT = 12, 468


class Tick(Value):
    x: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Scale:
    low: float
    high: float
    shown: Metric

    def x(self, value: float) -> float:
        span = math.log(self.high / self.low) or 1.0
        share = math.log(max(value, self.low) / self.low) / span
        return round(LEFT + (RIGHT - LEFT) * min(share, 1.0), 1)

    def ticks(self) -> tuple[Tick, ...]:
        return tuple(
            Tick(x=self.x(value), label=self._label(value))
            for value in round_values(self.low, self.high)
        )

    def _label(self, value: float) -> str:
        return f"{value / 1000:g} ms" if self.shown.unit == "µs" else f"{value:g}/s"


SPARK_WIDTH, SPARK_HEIGHT = 90, 22
SPARK_POINTS = 180  # two for each unit of width


def render_html(data: ReportData) -> str:
    """The whole report as one HTML document."""
    return _environment().get_template("report.html.jinja").render(data=data)


def utc(moment: str | None) -> str:
    """A stored moment as UTC to the second; anything else is shown unchanged."""
    if not moment:
        return ""
    try:
        parsed = datetime.fromisoformat(moment)
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        shown = aware.astimezone(UTC)  # no UTC for a first or last hour of all time
    except (ValueError, OverflowError):
        return moment
    return f"{shown.replace(tzinfo=None).isoformat(sep=' ', timespec='seconds')} UTC"


class Spark(Value):
    """The one-second rates of a sample."""

    points: str
    description: str


def spark(sample: Sample) -> Spark | None:
    """A line from the first second to the last, from zero up."""
    rates, seconds = _thinned(sample.per_second)
    if len(rates) < 2 or max(rates) <= 0:
        return None
    step, highest = SPARK_WIDTH / (len(rates) - 1), max(rates)
    points = [
        f"{i * step:.1f},{SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * rate / highest:.1f}"
        for i, rate in enumerate(rates)
    ]
    each = "each second" if seconds == 1 else f"each second, means of {seconds} s"
    return Spark(
        points=" ".join(points),
        description=f"operations {each}: " + ", ".join(significant(rate) for rate in rates),
    )


def _thinned(rates: Sequence[float]) -> tuple[Sequence[float], int]:
    """No more of them than a line shows, and of how many seconds each is the mean."""
    seconds = max(1, math.ceil(len(rates) / SPARK_POINTS))
    parts = (rates[begin : begin + seconds] for begin in range(0, len(rates), seconds))
    return (rates if seconds == 1 else [sum(part) / len(part) for part in parts]), seconds


def sample_metrics(comparison: ComparisonTable) -> tuple[Metric, ...]:
    """Return what is shown of each sample: what decided, and what most readers ask for."""
    decider = filter(None, (comparison.value_shown,))
    return tuple(dict.fromkeys((RATE, *decider, CPU, CLIENT_CPU)))


def page_environment(*packages: str) -> Environment:
    """Renders the templates of these packages, and this one's: every text escaped, none missing."""
    loaders = [PackageLoader(package) for package in (*packages, "dsresults")]
    return Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _environment() -> Environment:
    environment = page_environment()
    environment.filters.update(
        significant=number_text.significant,
        whole=number_text.whole,
        counted=number_text.counted,
        capital=number_text.capital,
        figure=number_text.figure,
        ms=number_text.milliseconds,
        utc=utc,
    )
    environment.globals.update(
        charts=charts,
        checks_told=told,
        fewest_slower=FEWEST_SLOWER,
        flame_graphs=flame_graphs,
        flame_width=FLAME_WIDTH,
        latency_metrics=(LATENCY.name, LATENCY_P99.name),
        no_difference=NO_DIFFERENCE,
        percentile_charts=percentile_charts,
        percentiles_shown=IN_TABLE,
        plot=PLOT,
        read_back=read_back,
        sample_metrics=sample_metrics,
        shown_columns=shown_columns,
        spark=spark,
        repeat_command=repeat_command,
        chart_width=WIDTH,
        spark_width=SPARK_WIDTH,
        spark_height=SPARK_HEIGHT,
    )
    return environment
