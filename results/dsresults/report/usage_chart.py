"""CPU time and memory in the course of a run as geometry: lines with bands over their runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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

LETTER = 8.0  # wide, at most


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
    return course_plot(
        workload_id,
        f"{resource.title} in the course of a run",
        lines,
        unit=resource.unit,
        across_title="seconds since the load began",
    )


def course_plot(
    workload_id: str,
    what: str,
    lines: Mapping[str, Sequence[CoursePoint]],
    *,
    unit: str,
    across_title: str,
    marks: Mapping[float, str] | None = None,
) -> LinePlot:
    """Lines over time from zero up; marks are places on the axis of time, even ones if absent."""
    longest_s = max(points[-1].at_s for points in lines.values())
    top = max(point.high for points in lines.values() for point in points) * 1.05 or 1.0

    def place(at_s: float, value: float) -> tuple[float, float]:
        x = PLOT.left + (PLOT.right - PLOT.left) * at_s / longest_s
        return round(x, 1), round(PLOT.bottom - (PLOT.bottom - PLOT.top) * value / top, 1)

    ends = [place(points[-1].at_s, points[-1].middle) for points in lines.values()]
    heights = spread([y for _, y in ends])
    shown = marks or {at_s: f"{at_s:g}" for at_s in even_values(longest_s)}
    return LinePlot(
        workload_id=workload_id,
        what=what,
        title=f"{what}, {workload_id}",
        description="; ".join(_told(name, unit, points) for name, points in lines.items()),
        across_title=across_title,
        across=_apart(
            [AxisMark(at=place(at_s, 0.0)[0], label=text) for at_s, text in shown.items()]
        ),
        up=tuple(
            AxisMark(at=place(0.0, value)[1], label=f"{value:g}{unit}")
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
                title=_told(name, unit, points),
            )
            for number, (name, points) in enumerate(lines.items())
        ),
    )


def _apart(marks: Sequence[AxisMark]) -> tuple[AxisMark, ...]:
    """The same places; a label that would be on the one before is left out."""
    found: list[AxisMark] = []
    end = -math.inf
    for mark in marks:
        fits = mark.at - LETTER * len(mark.label) / 2 > end
        end = mark.at + LETTER * len(mark.label) / 2 + LETTER if fits else end
        found.append(mark if fits else AxisMark(at=mark.at, label=""))
    return tuple(found)


def _told(name: str, unit: str, points: Sequence[CoursePoint]) -> str:
    last, highest = points[-1], max(point.high for point in points)
    first, later, most = (significant(v) for v in (points[0].middle, last.middle, highest))
    after = significant(last.at_s)
    return f"{name}: {first}{unit} at first, {later}{unit} after {after} s, highest {most}{unit}"
