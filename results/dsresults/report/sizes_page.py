"""Growth with the size of a directory, as text and as a page; its chart has two log axes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import METRICS
from dsresults.compare.size_growth import RowGrowth, SizeGrowth, SizePoint, spelled, told_growth
from dsresults.number_text import significant, whole
from dsresults.page_files import page_environment, utc, write_page
from dsresults.report.percentile_chart import (
    MOST_LINES,
    PLOT,
    AxisMark,
    CurveLine,
    LinePlot,
    LogScale,
    log_scale,
    points_text,
    round_values,
    short_name,
    spread,
)

COLUMNS = "{:>9}{:>6}{:>12}{:>22}{:>22}"


def growth_chart(found: SizeGrowth) -> LinePlot | None:
    """None where no row has values at two sizes."""
    rows = [row for row in found.rows if row.exponent][:MOST_LINES]
    points = [each for row in rows for each in row.known]
    if not points:
        return None
    metric = METRICS[found.metric]
    ends = [end for each in points for end in (each.low, each.high) if end]
    up, across = log_scale(ends), log_scale([float(each.users) for each in points])
    sizes = sorted({each.users for each in points})
    return LinePlot(
        workload_id=found.workload_id,
        what=f"{metric.title} ({metric.unit}) by size",
        title=f"{metric.heading} by size, {found.workload_id}",
        description="; ".join(told_growth(found, metric)),
        across_title="users of the directory",
        across=tuple(AxisMark(at=across.x(each), label=whole(each)) for each in sizes),
        up=tuple(
            AxisMark(at=up.y(each), label=significant(each))
            for each in round_values(up.low, up.high)
        ),
        lines=_lines(rows, metric, across, up),
    )


def _lines(
    rows: list[RowGrowth], metric: Metric, across: LogScale, up: LogScale
) -> tuple[CurveLine, ...]:
    places = [_places(row, across, up) for row in rows]
    heights = spread([middle[-1][1] for middle, _ in places])
    return tuple(
        CurveLine(
            candidate=row.row,
            pattern=number,
            points=points_text(middle),
            band=points_text(band),
            name=short_name(row.row),
            end_x=middle[-1][0],
            end_y=middle[-1][1],
            name_y=heights[number],
            title=f"{row.row}: {metric.heading} {significant(row.times)} times from the smallest "
            "to the largest size",
        )
        for number, (row, (middle, band)) in enumerate(zip(rows, places, strict=True))
    )


Places = list[tuple[float, float]]


def _places(row: RowGrowth, across: LogScale, up: LogScale) -> tuple[Places, Places]:
    """Where the line goes, and its band: along the highest of the runs, back along the lowest."""

    def along(points: tuple[SizePoint, ...], end: str) -> Places:
        return [(across.x(each.users), up.y(getattr(each, end))) for each in points]

    return along(row.known, "value"), along(row.known, "high") + along(row.known, "low")[::-1]


def render_sizes(found: SizeGrowth) -> str:
    """The whole page as one HTML document."""
    environment = page_environment()
    environment.filters.update(significant=significant, utc=utc, whole=whole, spelled=spelled)
    environment.globals.update(plot=PLOT)
    chart = growth_chart(found)
    return environment.get_template("sizes.html.jinja").render(
        found=found,
        metric=METRICS[found.metric],
        answers=tuple(told_growth(found, METRICS[found.metric])),
        chart=chart,
        patterns={line.candidate: line.pattern for line in chart.lines} if chart else {},
    )


def write_sizes(folder: Path, found: SizeGrowth) -> Path:
    """Write sizes.json and sizes.html, each completely or not at all; the page's path."""
    return write_page(folder, "sizes", render_sizes(found), found)


def told_sizes(found: SizeGrowth) -> Iterator[str]:
    """The answer, a table for each row, and the rule."""
    metric = METRICS[found.metric]
    yield f"{found.workload_id}: {found.title}"
    yield from told_growth(found, metric)
    for row in found.rows:
        yield f"\n{row.row}: {metric.title} ({metric.unit})"
        yield COLUMNS.format("users", "runs", "median", "lowest to highest", "exponent since")
        yield from map(_line, row.points)
    yield f"\n{found.rule}"


def _line(point: SizePoint) -> str:
    if point.value is None:
        return f"{whole(point.users):>9}  {point.note}"
    ends = f"{significant(point.low or 0.0)} to {significant(point.high or 0.0)}"
    since = spelled(point.exponent) if point.exponent else "-"
    return COLUMNS.format(whole(point.users), point.runs, significant(point.value), ends, since)
