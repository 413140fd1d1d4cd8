"""A series as a chart: its level over time, a place to click for each tip, its steps marked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from xml.etree.ElementTree import Element

from dsharness.measure.metrics import METRICS
from dsresults.number_text import significant
from dsresults.page.chart import Area, Axis, Chart, box, dot, label, line, path, shape
from dsresults.watch.watch_state import WatchedBranchTips
from dsresults.watch.watched_series import SeriesPoint, WatchedTip

LEAST_SPAN = 0.1  # of the axis, so that a steady series looks steady
DATE_WIDTH = 92.0
LETTER = 8  # the width of one, at most
AREA = Area(width=480.0, height=190.0, left=56.0, right=468.0, top=30.0, bottom=156.0)
RADIUS = {"none": 2.0, "open": 3.5}


def wide_area(width: float) -> Area:
    """Return the area of a chart that has a page of its own."""
    wide = max(AREA.width, width)
    return Area(width=wide, height=230.0, left=56.0, right=wide - 12, top=30.0, bottom=196.0)


def series_chart(branch_tips: WatchedBranchTips, area: Area = AREA, page: str = "") -> Chart:
    """Return each tip at the moment of its answer, as a multiple of the first reference."""
    points_by_number = {point.number: point for point in branch_tips.points}
    up = _ratio_axis(branch_tips.points)
    moments = [datetime.fromisoformat(tip.at).timestamp() for tip in branch_tips.tips]
    alone = 0.5 if len(moments) == 1 else 0.0  # in the middle
    across = Axis(low=moments[0] - alone, high=moments[-1] + alone, marks={})
    places = [area.x(across, moment) for moment in moments]
    numbers = sorted(points_by_number)
    level = [(places[number], area.y(up, points_by_number[number].ratio)) for number in numbers]
    band = [(places[number], area.y(up, points_by_number[number].high)) for number in numbers]
    band += [
        (places[number], area.y(up, points_by_number[number].low)) for number in reversed(numbers)
    ]
    heights = [area.y(up, height) for height in _heights(branch_tips.tips, points_by_number)]
    return Chart(
        title=f"{branch_tips.series}, by {branch_tips.series.metric}",
        description=_words(branch_tips),
        caption="A dashed line stands at a tip that differs from its reference; the band is what "
        "the level may be.",
        width=area.width,
        height=area.height,
        leads=True,
        least_width=area.width if area.width > AREA.width else 0.0,
        shapes=(
            *area.up(up),
            area.foot(),
            *_dates(branch_tips.tips, places, area),
            path("polygon", band, "spread pattern-0"),
            *_steps(branch_tips.tips, places, area),
            path("polyline", level, "curve pattern-0"),
            *_tips(branch_tips.tips, places, heights, area, page),
        ),
    )


def _ratio_axis(points: Sequence[SeriesPoint]) -> Axis:
    """Around all levels and their intervals; 1 is always there, and no less than 0."""
    low = min((1.0, *(point.low for point in points)))
    high = max((1.0, *(point.high for point in points)))
    wider = max(0.08 * (high - low), (LEAST_SPAN - (high - low)) / 2)
    low, high = max(0.0, low - wider), high + wider
    marks = {value: f"{value:g}\u00d7" for value in _round_ratios(low, high)}
    return Axis(low=low, high=high, marks=marks)


def _heights(
    tips: Sequence[WatchedTip], points_by_number: dict[int, SeriesPoint]
) -> Iterator[float]:
    """Each tip's level; one that says nothing stands where the one before it stands."""
    level = 1.0
    for number in range(len(tips)):
        level = points_by_number[number].ratio if number in points_by_number else level
        yield level


def _tips(
    tips: Sequence[WatchedTip],
    places: Sequence[float],
    heights: Sequence[float],
    area: Area,
    page: str,
) -> Iterator[Element]:
    """Strips that share the whole width: each reaches half way to its neighbours."""
    middles = [(first + second) / 2 for first, second in pairwise(places)]
    edges = [area.left, *middles, area.right]
    for number, (tip, x, y) in enumerate(zip(tips, places, heights, strict=True)):
        kind = tip.direction if tip.differs or tip.direction == "none" else "open"
        begin, width = edges[number], edges[number + 1] - edges[number]
        yield shape(
            "a",
            box(begin, area.top, width, area.bottom - area.top, "reach"),
            dot(x, y, RADIUS.get(kind, 5.0), f"tip-mark {kind}"),
            kind="place",
            title=f"{tip.at[:10]} {tip.tip[:12]}: {tip.summary}",
            href=f"{page}#t{number}",
            **({"tabindex": "-1"} if kind == "none" else {}),
        )


def _steps(tips: Sequence[WatchedTip], places: Sequence[float], area: Area) -> Iterator[Element]:
    """Mark each tip that differs from its reference; no label is on another."""
    end = -math.inf
    for tip, x in zip(tips, places, strict=True):
        if not tip.differs:
            continue
        ratio = tip.effect if METRICS[tip.series.metric].floor is None else None
        words = f"{significant(ratio)}\u00d7 {tip.direction}" if ratio else tip.direction
        is_left = x > area.width * 0.6
        begin = x - LETTER * len(words) if is_left else x
        fits, end = begin > end, max(end, begin + LETTER * len(words))
        yield line(x, area.top - 10, x, area.bottom, f"step {tip.direction}")
        if fits:
            kind, anchor = f"step-label {tip.direction}", "end" if is_left else "start"
            yield label(x + (-5 if is_left else 5), area.top - 12, words, kind, anchor)


def _dates(tips: Sequence[WatchedTip], places: Sequence[float], area: Area) -> Iterator[Element]:
    """The first and the last, and what fits between them."""
    last = tips[-1].at[:10]
    most = area.right - DATE_WIDTH if tips[0].at[:10] != last else area.right
    dates_shown, begin = (
        {last: places[-1]},
        -math.inf,
    )  # the first begins at its place, others around it
    for tip, x in zip(tips, places, strict=True):
        if tip.at[:10] not in dates_shown and begin <= x <= most:
            dates_shown[tip.at[:10]] = x
            begin = x + DATE_WIDTH * 1.6
    for date, x in dates_shown.items():
        side = "start" if x < area.left + 45 else "end" if x > area.right - 45 else "middle"
        yield label(x, area.bottom + 20, date, "tick", side)


def _round_ratios(low: float, high: float) -> Iterator[float]:
    """Three to six round values of the axis."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(part * power for part in (0.1, 0.2, 0.5, 1, 2) if (high - low) / (part * power) < 6)
    for number in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield round(number * step, 9)


def _words(branch_tips: WatchedBranchTips) -> str:
    """For who does not see it: where it ends, and each step."""
    steps = [f"{tip.at[:10]} {tip.summary}" for tip in branch_tips.tips if tip.differs]
    level = (
        f"now {significant(branch_tips.level)} times the first reference"
        if branch_tips.level
        else ""
    )
    return "; ".join(filter(None, (f"{len(branch_tips.tips)} tips", level, *steps)))
