"""CPU time and memory in the course of a run as geometry: lines with bands over their runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dsresults.compare.comparison_table import ComparisonTable
from dsresults.compare.usage_courses import CoursePoint, UsageCourse, WorkloadUsage
from dsresults.number_text import significant
from dsresults.report.percentile_chart import (
    PLOT,
    AxisMark,
    CurveLine,
    LinePlot,
    drawn_candidates,
    even_values,
    points_text,
    short_name,
    spread,
)


@dataclass(frozen=True, kw_only=True)
class _Resource:
    """One of the two that are drawn."""

    title: str
    unit: str
    points: Callable[[UsageCourse], tuple[CoursePoint, ...]]


RESOURCES = (
    _Resource(title="CPUs busy", unit="", points=lambda course: course.cpus_busy),
    _Resource(title="memory", unit=" MiB", points=lambda course: course.memory_mib),
)


def usage_charts(
    comparison: ComparisonTable, usages: Sequence[WorkloadUsage]
) -> tuple[LinePlot, ...]:
    """Two for each workload."""
    return tuple(_charts(comparison, usages))


def _charts(comparison: ComparisonTable, usages: Sequence[WorkloadUsage]) -> Iterator[LinePlot]:
    for usage in usages:
        names = [each.candidate for each in usage.courses]
        wanted = drawn_candidates(comparison, usage.campaign_id, names)
        courses = [each for each in usage.courses if each.candidate in wanted]
        for resource in RESOURCES:
            yield _chart(usage.workload_id, resource, courses)


def _chart(workload_id: str, resource: _Resource, courses: Sequence[UsageCourse]) -> LinePlot:
    lines = {course.candidate: resource.points(course) for course in courses}
    longest_s = max(points[-1].at_s for points in lines.values())
    top = max(point.high for points in lines.values() for point in points) * 1.05 or 1.0

    def place(at_s: float, value: float) -> tuple[float, float]:
        x = PLOT.left + (PLOT.right - PLOT.left) * at_s / longest_s
        return round(x, 1), round(PLOT.bottom - (PLOT.bottom - PLOT.top) * value / top, 1)

    ends = [place(points[-1].at_s, points[-1].middle) for points in lines.values()]
    heights = spread([y for _, y in ends])
    return LinePlot(
        workload_id=workload_id,
        what=f"{resource.title} in the course of a run",
        title=f"{resource.title} of the server in the course of a run, {workload_id}",
        description="; ".join(_told(name, resource, points) for name, points in lines.items()),
        across_title="seconds since the load began",
        across=tuple(
            AxisMark(at=place(at_s, 0.0)[0], label=f"{at_s:g}") for at_s in even_values(longest_s)
        ),
        up=tuple(
            AxisMark(at=place(0.0, value)[1], label=f"{value:g}{resource.unit}")
            for value in even_values(top)
        ),
        lines=tuple(
            CurveLine(
                candidate=name,
                pattern=number,
                points=points_text([place(p.at_s, p.middle) for p in points]),
                band=points_text(
                    [place(p.at_s, p.high) for p in points]
                    + [place(p.at_s, p.low) for p in reversed(points)]
                ),
                name=short_name(name),
                end_x=ends[number][0],
                end_y=ends[number][1],
                name_y=heights[number],
                title=_told(name, resource, points),
            )
            for number, (name, points) in enumerate(lines.items())
        ),
    )


def _told(name: str, resource: _Resource, points: Sequence[CoursePoint]) -> str:
    first, last = points[0], points[-1]
    return (
        f"{name}: {significant(first.middle)}{resource.unit} at first, {significant(last.middle)}"
        f"{resource.unit} after {last.at_s:g} s, highest {significant(max(p.high for p in points))}"
        f"{resource.unit}"
    )
