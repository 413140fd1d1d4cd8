"""Latencies as geometry: how long operations took (log axis) over the percentile.

The axis of percentiles is one of nines, so that as much room is between 99 and 99.9 as between 90
and 99. A line is of all samples of a candidate together; its band is as wide as they differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsharness.model import Value
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.compare.latency_curves import LatencyCurve, OperationLatencies, Percentile
from dsresults.number_text import milliseconds

MOST_LINES = 6  # that can be told apart, each with a pattern of its own
NAME_LETTERS = 14
NAME_HEIGHT = 17.0


class PlotArea(Value):
    """Where curves are drawn: names stand on its right, times on its left, percentiles below."""

    width: float = 480.0
    left: float = 66.0
    right: float = 362.0
    top: float = 12.0
    bottom: float = 262.0
    height: float = 308.0


PLOT = PlotArea()


class AxisMark(Value):
    """A place on an axis."""

    at: float
    label: str


class CurveLine(Value):
    """One candidate's curve, as points of a polyline, and its band, as points of a polygon."""

    candidate: str
    pattern: int
    points: str
    band: str
    name: str
    end_x: float
    end_y: float
    name_y: float
    title: str


class LinePlot(Value):
    """Lines with their bands between two axes."""

    workload_id: str
    what: str
    title: str
    description: str
    across_title: str
    across: tuple[AxisMark, ...]
    up: tuple[AxisMark, ...]
    lines: tuple[CurveLine, ...]


class PercentileChart(LinePlot):
    """One kind of operation of one workload."""

    latencies: OperationLatencies

    @property
    def left_out(self) -> int:
        """How many candidates are in the table only."""
        return len(self.latencies.curves) - len(self.lines)

    def pattern_of(self, candidate: str) -> int | None:
        """None where it is not drawn."""
        return next((each.pattern for each in self.lines if each.candidate == candidate), None)


class LogScale(Value):
    """Values on a log axis, the largest at the top or on the right."""

    low: float
    high: float

    def y(self, value: float) -> float:
        return round(PLOT.bottom - (PLOT.bottom - PLOT.top) * self._share(value), 1)

    def x(self, value: float) -> float:
        return round(PLOT.left + (PLOT.right - PLOT.left) * self._share(value), 1)

    def _share(self, value: float) -> float:
        return math.log(value / self.low) / math.log(self.high / self.low)


class PercentScale(Value):
    """Percentiles on the axis of nines."""

    nines: float  # at its end

    def x(self, percent: float) -> float:
        return round(PLOT.left + (PLOT.right - PLOT.left) * nines_of(percent) / self.nines, 1)


def nines_of(percent: float) -> float:
    """0 at 0, 1 at 90, 2 at 99, 3 at 99.9."""
    return -math.log10(1 - percent / 100)


def percentile_charts(
    comparison: ComparisonTable, latencies: Sequence[OperationLatencies]
) -> tuple[PercentileChart, ...]:
    """One for each kind of operation; those with too few operations have a table only."""
    return tuple(_chart(each, _drawn(comparison, each)) for each in latencies)


def _drawn(comparison: ComparisonTable, latencies: OperationLatencies) -> list[LatencyCurve]:
    """Those that have a curve; of many, the ends of the line and both sides of its step."""
    curves = [each for each in latencies.curves if len(each.percentiles) > 1]
    names = [each.candidate for each in curves]
    wanted = drawn_candidates(comparison, latencies.campaign_id, names)
    return [each for each in curves if each.candidate in wanted]


def drawn_candidates(
    comparison: ComparisonTable, campaign_id: str, names: Sequence[str]
) -> set[str]:
    """Of many, the ends of the line and both sides of its step."""
    if len(names) <= MOST_LINES:
        return set(names)
    answers = (one.boundary for one in comparison.columns if one.campaign_id == campaign_id)
    found = next((answer for answer in answers if answer), None)
    sides = (found.before, found.after) if found else ()
    return {names[0], names[-1], *(each for each in sides if each)}


def _chart(latencies: OperationLatencies, curves: Sequence[LatencyCurve]) -> PercentileChart:
    reached = [each for curve in curves for each in curve.percentiles]
    times = [us for each in reached for us in (each.us, each.low_us, each.high_us) if us]
    scale = log_scale(times) if times else None
    across = PercentScale(nines=max((nines_of(each.percent) for each in reached), default=1.0))
    return PercentileChart(
        latencies=latencies,
        workload_id=latencies.workload_id,
        what=latencies.operation,
        across_title="percent of operations that took no longer",
        title=f"Latency of {latencies.operation} by percentile, {latencies.workload_id}",
        description="; ".join(f"{curve.candidate}: {_told(curve)}" for curve in curves),
        across=percent_marks(across) if scale else (),
        up=time_marks(scale) if scale else (),
        lines=_lines(curves, across, scale) if scale else (),
    )


def _told(curve: LatencyCurve) -> str:
    known = ((percent, curve.at(percent)) for percent in (50.0, 99.0))
    said = [f"{percent:g} % within {milliseconds(each.us)}" for percent, each in known if each]
    return ", ".join((*said, f"longest {milliseconds(curve.max_us)}"))


def _lines(
    curves: Sequence[LatencyCurve], across: PercentScale, scale: LogScale
) -> tuple[CurveLine, ...]:
    ends = [scale.y(curve.percentiles[-1].us) for curve in curves]
    return tuple(
        CurveLine(
            candidate=curve.candidate,
            pattern=number,
            points=points_text([(across.x(p.percent), scale.y(p.us)) for p in curve.percentiles]),
            band=_band(curve.percentiles, across, scale),
            name=short_name(curve.candidate),
            end_x=across.x(curve.percentiles[-1].percent),
            end_y=ends[number],
            name_y=name_y,
            title=f"{curve.candidate}: {_told(curve)}",
        )
        for number, (curve, name_y) in enumerate(zip(curves, spread(ends), strict=True))
    )


def _band(percentiles: Sequence[Percentile], across: PercentScale, scale: LogScale) -> str:
    """Along the highest of the samples, and back along the lowest."""
    highest = [(across.x(p.percent), scale.y(p.high_us)) for p in percentiles if p.high_us]
    lowest = [(across.x(p.percent), scale.y(p.low_us)) for p in percentiles if p.low_us]
    return points_text([*highest, *reversed(lowest)])


def points_text(places: Sequence[tuple[float, float]]) -> str:
    """Places as SVG takes them."""
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def short_name(name: str) -> str:
    """A name that has room next to its line."""
    return name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 1]}…"


def spread(places: Sequence[float]) -> list[float]:
    """Heights of names, near these places and in their order, none on another."""
    order = sorted(range(len(places)), key=lambda index: (places[index], index))
    moved = list(places)
    lowest = PLOT.top
    for index in order:
        moved[index] = max(moved[index], lowest)
        lowest = moved[index] + NAME_HEIGHT
    highest = PLOT.bottom
    for index in reversed(order):
        moved[index] = round(min(moved[index], highest), 1)
        highest = moved[index] - NAME_HEIGHT
    return moved


def log_scale(values: Sequence[float]) -> LogScale:
    """Around all of them, and wide enough that a steady value looks steady."""
    low, high = min(values), max(values)
    wider = max(1.1, math.sqrt(2 * low / high))
    return LogScale(low=low / wider, high=high * wider)


def time_marks(scale: LogScale) -> tuple[AxisMark, ...]:
    return tuple(
        AxisMark(at=scale.y(us), label=f"{us / 1000:g} ms")
        for us in round_values(scale.low, scale.high)
    )


def percent_marks(scale: PercentScale) -> tuple[AxisMark, ...]:
    """0, 50, and each further nine that is reached."""
    nines = (100 - 100 / 10**count for count in range(1, math.floor(scale.nines + 1e-6) + 1))
    return tuple(
        AxisMark(at=scale.x(percent), label=f"{round(percent, 6):g}")
        for percent in (0.0, 50.0, *nines)
        if nines_of(percent) <= scale.nines + 1e-6
    )


def even_values(high: float) -> tuple[float, ...]:
    """Of an axis that begins at 0: three to seven of them."""
    power = 10.0 ** math.floor(math.log10(high))
    step = next(each * power for each in (0.2, 0.5, 1.0, 2.0) if high / (each * power) <= 6.5)
    return tuple(round(number * step, 9) for number in range(int(high / step) + 1))


def round_values(low: float, high: float) -> tuple[float, ...]:
    """Of a log axis: so few that they can be read, and at least two."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = next(each for most, each in ROUND_STEPS if high / low < most)
    values = (step * 10.0**power for power in decades for step in steps)
    return tuple(value for value in values if low <= value <= high)


ROUND_STEPS: tuple[tuple[float, tuple[float, ...]], ...] = (  # of an axis with less than this span
    (6, (1, 1.5, 2, 3, 4, 5, 7.5)),  # two of them in any span of 2
    (60, (1, 2, 5)),
    (200, (1, 3)),
    (math.inf, (1,)),
)
