"""What servers used in the course of a run: for each candidate a band over its runs. Pure."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pydantic import Field

from dsharness.model import Sample, Usage, Value
from dsresults.compare.comparison_table import Column, ComparisonTable

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
    found = (_of_column(column, comparison.line, samples) for column in comparison.columns)
    return tuple(each for each in found if each.courses)


def _of_column(column: Column, line: Sequence[str], samples: Sequence[Sample]) -> WorkloadUsage:
    valid = [one for one in samples if one.campaign_id == column.campaign_id and one.valid]
    runs = {
        name: [u for one in valid if one.candidate_id == name for u in one.usage] for name in line
    }
    longest_s = max((usage.at_s[-1] for group in runs.values() for usage in group), default=0.0)
    step_s = STEP_S * max(1, round(longest_s / STEP_S / MOST_POINTS))
    courses = (usage_course(name, group, step_s) for name, group in runs.items() if group)
    return WorkloadUsage(
        campaign_id=column.campaign_id,
        workload_id=column.workload_id,
        courses=tuple(each for each in courses if len(each.cpus_busy) >= FEWEST_POINTS),
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
    each = list(zip(runs, values, strict=True))
    for number, at_s in enumerate(moments):
        there = [read[number] for usage, read in each if usage.at_s[-1] >= at_s]
        yield CoursePoint(
            at_s=at_s, middle=statistics.median(there), low=min(there), high=max(there)
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
