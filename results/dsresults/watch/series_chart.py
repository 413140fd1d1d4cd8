"""A series as geometry: its level over time, a place to click for each tip, its steps marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from dsharness.measure.metrics import METRICS
from dsharness.model import Value
from dsresults.number_text import significant
from dsresults.watch.watch_state import WatchedBranchTips
from dsresults.watch.watched_series import SeriesPoint, WatchedTip

LEAST_SPAN = 0.1  # of the axis, so that a steady series looks steady
DATE_WIDTH = 92.0


class ChartArea(Value):
    """Where a series is drawn."""

    width: float = 480.0
    height: float = 190.0
    left: float = 56.0
    top: float = 30.0
    bottom: float = 156.0

    @property
    def right(self) -> float:
        return self.width - 12.0


class TipPlace(NamedTuple):
    """A tip: what is drawn of it, and the strip of the chart that leads to it."""

    number: int
    x: float
    y: float
    reach_x: float
    reach_width: float
    kind: str  # slower, faster, none, open
    title: str


class ChartStep(NamedTuple):
    """A tip that differs from its reference."""

    x: float
    kind: str
    label: str
    side: str  # where the label begins


class ChartMark(NamedTuple):
    """A place on an axis."""

    at: float
    label: str


class SeriesChart(NamedTuple):
    """All that a template draws."""

    area: ChartArea
    title: str
    description: str
    line: str
    band: str
    places: tuple[TipPlace, ...]
    steps: tuple[ChartStep, ...]
    up: tuple[ChartMark, ...]
    across: tuple[ChartMark, ...]


def series_chart(shown: WatchedBranchTips, area: ChartArea | None = None) -> SeriesChart:
    """Each tip at the moment of its answer, as a multiple of the first reference."""
    area = area or ChartArea()
    known = {point.number: point for point in shown.points}
    low, high = _span(tuple(known.values()))
    times = [datetime.fromisoformat(tip.at).timestamp() for tip in shown.tips]
    begun, lasted = times[0], (times[-1] - times[0]) or 1.0

    def x(at: float) -> float:
        if len(times) == 1:
            return (area.left + area.right) / 2
        return round(area.left + (area.right - area.left) * (at - begun) / lasted, 1)

    def y(ratio: float) -> float:
        share = (ratio - low) / (high - low)
        return round(area.bottom - (area.bottom - area.top) * share, 1)

    across = [x(at) for at in times]
    numbers = sorted(known)
    line = [(across[number], y(known[number].ratio)) for number in numbers]
    band = [(across[number], y(known[number].high)) for number in numbers]
    band += [(across[number], y(known[number].low)) for number in reversed(numbers)]
    heights = _heights(shown.tips, known)
    return SeriesChart(
        area=area,
        title=f"{shown.series}, by {shown.series.metric}",
        description=_told(shown),
        line=_path(line),
        band=_path(band),
        places=tuple(_places(shown.tips, across, [y(each) for each in heights], area)),
        steps=tuple(_steps(shown.tips, across, area)),
        up=tuple(ChartMark(y(value), f"{value:g}\u00d7") for value in _round_ratios(low, high)),
        across=tuple(_dates(shown.tips, across, area)),
    )


def _span(points: Sequence[SeriesPoint]) -> tuple[float, float]:
    """Around all levels and their intervals; 1 is always there, and no less than 0."""
    low = min((point.low for point in points), default=1.0)
    high = max((point.high for point in points), default=1.0)
    low, high = min(low, 1.0), max(high, 1.0)
    wider = max(0.08 * (high - low), (LEAST_SPAN - (high - low)) / 2)
    return max(0.0, low - wider), high + wider


def _heights(tips: Sequence[WatchedTip], known: dict[int, SeriesPoint]) -> Iterator[float]:
    """Each tip's level; one that says nothing stands where the one before it stands."""
    level = 1.0
    for number in range(len(tips)):
        level = known[number].ratio if number in known else level
        yield level


def _places(
    tips: Sequence[WatchedTip], across: Sequence[float], heights: Sequence[float], area: ChartArea
) -> Iterator[TipPlace]:
    """Strips that share the whole width: each reaches half way to its neighbours."""
    middles = [(one + other) / 2 for one, other in pairwise(across)]
    edges = [area.left, *middles, area.right]
    for number, tip in enumerate(tips):
        yield TipPlace(
            number=number,
            x=across[number],
            y=heights[number],
            reach_x=round(edges[number], 1),
            reach_width=round(edges[number + 1] - edges[number], 2),
            kind=tip.direction if tip.differs or tip.direction == "none" else "open",
            title=f"{tip.at[:10]} {tip.tip[:12]}: {tip.summary}",
        )


def _steps(
    tips: Sequence[WatchedTip], across: Sequence[float], area: ChartArea
) -> Iterator[ChartStep]:
    end = -math.inf  # of the last label
    for tip, x in zip(tips, across, strict=True):
        if not tip.differs:
            continue
        ratio = tip.effect if METRICS[tip.series.metric].floor is None else None
        label = f"{significant(ratio)}\u00d7 {tip.direction}" if ratio else tip.direction
        side = "end" if x > area.width * 0.6 else "start"
        begin = x - 8 * len(label) if side == "end" else x
        fits, end = begin > end, max(end, begin + 8 * len(label))
        yield ChartStep(x=x, kind=tip.direction, label=label if fits else "", side=side)


def _dates(
    tips: Sequence[WatchedTip], across: Sequence[float], area: ChartArea
) -> Iterator[ChartMark]:
    """The first and the last, and what fits between them."""
    last = tips[-1].at[:10]
    most = area.right - DATE_WIDTH if tips[0].at[:10] != last else area.right
    shown, begin = {last}, -math.inf  # the first one begins at its place, others stand around it
    for tip, x in zip(tips, across, strict=True):
        if tip.at[:10] not in shown and begin <= x <= most:
            shown.add(tip.at[:10])
            begin = x + DATE_WIDTH * 1.6
            yield ChartMark(x, tip.at[:10])
    yield ChartMark(across[-1], last)


def _round_ratios(low: float, high: float) -> Iterator[float]:
    """Three to six round values of the axis."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(each * power for each in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (each * power) < 6)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield round(number * step, 9)


def _path(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)


def _told(shown: WatchedBranchTips) -> str:
    """For who does not see it: where it ends, and each step."""
    steps = [f"{tip.at[:10]} {tip.summary}" for tip in shown.tips if tip.differs]
    level = f"now {significant(shown.level)} times the first reference" if shown.level else ""
    return "; ".join(filter(None, (f"{len(shown.tips)} tips", level, *steps)))
