"""Levels of load as a page: p50 and p99 (log axis) over the rate that was asked, and a table.

Each row has two lines of one pattern, and its knee is a band along its p99.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from dsharness.model import Value
from dsresults.compare.latency_curves import FEWEST_SLOWER, IN_TABLE
from dsresults.compare.load_levels import LoadLevels, RowLevels
from dsresults.number_text import significant
from dsresults.page_files import page_environment, utc, write_page
from dsresults.report.percentile_chart import (
    MOST_LINES,
    PLOT,
    AxisMark,
    LogScale,
    log_scale,
    points_text,
    short_name,
    spread,
    time_marks,
)

DRAWN = (50.0, 99.0)
MOST_MARKS = 6


class LevelLine(Value):
    """One percentile of one row, over its levels."""

    pattern: int
    percent: float
    points: str
    dots: tuple[tuple[float, float], ...]
    knee: str  # the part of the line that the knee lies in
    name: str
    end_x: float
    end_y: float
    name_y: float
    title: str


class LevelsChart(Value):
    """All rows that can be told apart."""

    title: str
    description: str
    rates: tuple[AxisMark, ...]
    times: tuple[AxisMark, ...]
    lines: tuple[LevelLine, ...]
    left_out: int


def levels_chart(found: LoadLevels) -> LevelsChart:
    """Empty of lines where no level has a percentile."""
    rows = found.rows[:MOST_LINES]
    times = [
        each.us for row in rows for level in row.levels for percent in DRAWN
        if (each := level.at(percent))
    ]  # fmt: skip
    highest = 1.04 * max(level.asked_per_s for row in rows for level in row.levels)
    scale = log_scale(times) if times else None
    return LevelsChart(
        title=f"Latency over the rate, {found.workload_id}",
        description="; ".join(f"{row.row}: {row.knee}" for row in rows),
        rates=_rate_marks(highest),
        times=time_marks(scale) if scale else (),
        lines=_lines(rows, highest, scale) if scale else (),
        left_out=len(found.rows) - len(rows),
    )


def _x(rate: float, highest: float) -> float:
    return round(PLOT.left + (PLOT.right - PLOT.left) * rate / highest, 1)


def _rate_marks(highest: float) -> tuple[AxisMark, ...]:
    power = 10.0 ** math.floor(math.log10(highest / MOST_MARKS))
    step = next(each * power for each in (1, 2, 5, 10) if highest / (each * power) <= MOST_MARKS)
    steps = (step * number for number in range(math.floor(highest / step) + 1))
    return tuple(AxisMark(at=_x(rate, highest), label=significant(rate)) for rate in steps)


def _lines(rows: Sequence[RowLevels], highest: float, scale: LogScale) -> tuple[LevelLine, ...]:
    known = [
        (pattern, row, percent, places)
        for pattern, row in enumerate(rows)
        for percent in DRAWN
        if (places := _places(row, percent, highest, scale))
    ]
    ends = spread([list(places.values())[-1][1] for *_, places in known])
    return tuple(
        LevelLine(
            pattern=pattern,
            percent=percent,
            points=points_text(list(places.values())),
            dots=tuple(places.values()),
            knee=_knee(row, places) if percent == DRAWN[-1] else "",
            name=short_name(row.row) if percent == DRAWN[-1] else f"p{percent:g}",
            end_x=list(places.values())[-1][0],
            end_y=list(places.values())[-1][1],
            name_y=name_y,
            title=f"{row.row}, p{percent:g}; {row.knee}",
        )
        for (pattern, row, percent, places), name_y in zip(known, ends, strict=True)
    )


def _places(
    row: RowLevels, percent: float, highest: float, scale: LogScale
) -> dict[float, tuple[float, float]]:
    """Where the levels stand that have this percentile, by their rates."""
    return {
        level.asked_per_s: (_x(level.asked_per_s, highest), scale.y(each.us))
        for level in row.levels
        if (each := level.at(percent))
    }


def _knee(row: RowLevels, places: dict[float, tuple[float, float]]) -> str:
    """From the last level before it to the first at or after it."""
    low, high = row.knee.above_per_s or 0.0, row.knee.at_most_per_s
    if high is None:
        return ""
    return points_text([place for rate, place in places.items() if low <= rate <= high])


def render_levels(found: LoadLevels) -> str:
    """The whole page as one HTML document."""
    environment = page_environment()
    environment.filters.update(significant=significant, utc=utc)
    return environment.get_template("levels.html.jinja").render(
        found=found, chart=levels_chart(found), plot=PLOT, percentiles_shown=IN_TABLE,
        fewest_slower=FEWEST_SLOWER, most_lines=MOST_LINES,
    )  # fmt: skip


def write_levels(folder: Path, found: LoadLevels) -> Path:
    """Write levels.json and levels.html, each completely or not at all; the page's path."""
    return write_page(folder, "levels", render_levels(found), found)
