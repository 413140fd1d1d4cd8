"""What servers used in the course of a run: a band over its runs, and their charts. Pure."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pydantic import Field

from dsharness.model import Sample, Usage, Value
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.number_text import significant
from dsresults.page.chart import (
    MOST_LINES,
    Axis,
    Chart,
    ChartLine,
    even_axis,
    line_chart,
    short_name,
)

STEP_S = 0.25  # as often as it is read
MOST_POINTS = 120  # of a line
FEWEST_POINTS = 4  # that say anything of a course


class CoursePoint(Value):
    """What the runs that lasted so long used at one moment."""

    at_s: float
    middle: float
    low: float
    high: float


class UsageCourse(Value):
    """One candidate under one workload, as long as half of its runs lasted."""

    candidate: str
    runs: int
    cpus_busy: tuple[CoursePoint, ...]
    memory_mib: tuple[CoursePoint, ...]


class WorkloadUsage(Value):
    """One workload, on all candidates whose usage was read."""

    campaign_id: str
    workload_id: str
    courses: tuple[UsageCourse, ...] = Field(description="in the order of the line")


def usage_courses(
    comparison: ComparisonTable, samples: Sequence[Sample]
) -> tuple[WorkloadUsage, ...]:
    """Of each workload with runs long enough to have a course."""
    usages = (_of_column(column, comparison.line, samples) for column in comparison.columns)
    return tuple(usage for usage in usages if usage.courses)


def _of_column(column: Column, line: Sequence[str], samples: Sequence[Sample]) -> WorkloadUsage:
    valid = [
        sample for sample in samples if sample.campaign_id == column.campaign_id and sample.valid
    ]
    runs = {
        name: [u for sample in valid if sample.candidate_id == name for u in sample.usage]
        for name in line
    }
    longest_s = max((usage.at_s[-1] for group in runs.values() for usage in group), default=0.0)
    step_s = STEP_S * max(1, round(longest_s / STEP_S / MOST_POINTS))
    courses = (usage_course(name, group, step_s) for name, group in runs.items() if group)
    return WorkloadUsage(
        campaign_id=column.campaign_id,
        workload_id=column.workload_id,
        courses=tuple(course for course in courses if len(course.cpus_busy) >= FEWEST_POINTS),
    )


def usage_course(candidate: str, runs: Sequence[Usage], step_s: float) -> UsageCourse:
    """Readings of different runs came at different moments: each is taken at even steps."""
    until_s = statistics.median(usage.at_s[-1] for usage in runs)
    moments = [step_s * number for number in range(1, int(until_s / step_s) + 1)]
    return UsageCourse(
        candidate=candidate,
        runs=len(runs),
        cpus_busy=tuple(_points(moments, runs, (_busy(u, moments, step_s) for u in runs))),
        memory_mib=tuple(_points(moments, runs, (_memory(u, moments) for u in runs))),
    )


def _points(
    moments: Sequence[float], runs: Sequence[Usage], values: Iterable[Sequence[float]]
) -> Iterable[CoursePoint]:
    run_readings = list(zip(runs, values, strict=True))
    for number, at_s in enumerate(moments):
        readings = [read[number] for usage, read in run_readings if usage.at_s[-1] >= at_s]
        yield CoursePoint(
            at_s=at_s, middle=statistics.median(readings), low=min(readings), high=max(readings)
        )


def _busy(usage: Usage, moments: Sequence[float], step_s: float) -> Sequence[float]:
    """CPUs that were at work in the step before each moment."""
    at_s, cpu_us = (0.0, *usage.at_s), (0.0, *usage.cpu_us)
    used_us = [between(at_s, cpu_us, end) for end in (0.0, *moments)]
    return [(after - before) / (step_s * 1e6) for before, after in pairwise(used_us)]


def _memory(usage: Usage, moments: Sequence[float]) -> Sequence[float]:
    return [between(usage.at_s, usage.memory_kib, moment) / 1024 for moment in moments]


def between(places: Sequence[float], values: Sequence[float], place: float) -> float:
    """A value on the straight line between its neighbours; outside, the first or last one."""
    after = bisect_right(places, place)
    if after in {0, len(places)}:
        return values[max(0, after - 1)]
    begin, end = places[after - 1], places[after]
    slope = (values[after] - values[after - 1]) / (end - begin)
    return slope * (place - begin) + values[after - 1]


def usage_charts(comparison: ComparisonTable, usages: Sequence[WorkloadUsage]) -> tuple[Chart, ...]:
    """Return CPUs and memory in the course of a run, of each workload."""
    return tuple(_charts(comparison, usages))


def _charts(comparison: ComparisonTable, usages: Sequence[WorkloadUsage]) -> Iterator[Chart]:
    for usage in usages:
        names = [course.candidate for course in usage.courses]
        drawn_names = comparison.drawn(usage.campaign_id, names, MOST_LINES)
        courses = [course for course in usage.courses if course.candidate in drawn_names]
        for resource, unit, lines in (
            ("CPUs busy", "", {course.candidate: course.cpus_busy for course in courses}),
            ("memory", " MiB", {course.candidate: course.memory_mib for course in courses}),
        ):
            yield course_chart(
                usage.workload_id,
                f"{resource} in the course of a run",
                lines,
                unit=unit,
                across_title="seconds since the load began",
            )


def course_chart(
    workload_id: str,
    title: str,
    courses: Mapping[str, Sequence[CoursePoint]],
    *,
    unit: str,
    across_title: str,
    marks: Mapping[float, str] | None = None,
) -> Chart:
    """Return lines over time from zero up; marks are places on the axis of time."""
    longest_s = max(points[-1].at_s for points in courses.values())
    top = max(point.high for points in courses.values() for point in points) * 1.05 or 1.0
    even = even_axis(longest_s, "{:g}".format, across_title)
    return line_chart(
        title=f"{title}, {workload_id}",
        caption=f"{workload_id}, {title}",
        across=Axis(low=0.0, high=longest_s, marks=marks, title=across_title) if marks else even,
        up=even_axis(top, lambda value: f"{value:g}{unit}"),
        lines=[
            ChartLine(
                name=short_name(name),
                title=_course_words(name, unit, points),
                points=[(point.at_s, point.middle) for point in points],
                band=[
                    *((point.at_s, point.high) for point in points),
                    *((point.at_s, point.low) for point in reversed(points)),
                ],
                pattern=number,
            )
            for number, (name, points) in enumerate(courses.items())
        ],
    )


def _course_words(name: str, unit: str, points: Sequence[CoursePoint]) -> str:
    last, highest = points[-1], max(point.high for point in points)
    first, later, most = (significant(v) for v in (points[0].middle, last.middle, highest))
    after = significant(last.at_s)
    return f"{name}: {first}{unit} at first, {later}{unit} after {after} s, highest {most}{unit}"
