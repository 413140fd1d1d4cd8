"""The facts of usage over time: even steps from uneven readings, inside what was read."""

from __future__ import annotations

import re
from itertools import accumulate

import numpy as np
import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st
from reported import DEBIAN, reported

from dsharness.model import Usage
from dsresults.compare.usage_courses import between, usage_charts, usage_course, usage_courses
from dsresults.report import ReportData, render_html
from dsresults.report.report_data import Section

BARE = reported(DEBIAN)
LINE = BARE.sections[0].comparison.line


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Readings at uneven moments, of a server with at most two CPUs."""
    gaps = draw(st.lists(st.floats(0.2, 0.5), min_size=4, max_size=30))
    busy = draw(st.lists(st.floats(0, 2), min_size=len(gaps), max_size=len(gaps)))
    memory = draw(st.lists(st.integers(1, 10**6), min_size=len(gaps), max_size=len(gaps)))
    used = accumulate(gap * cpus * 1e6 for gap, cpus in zip(gaps, busy, strict=True))
    return Usage(at_s=tuple(accumulate(gaps)), cpu_us=tuple(used), memory_kib=tuple(memory))


@given(usages(), st.floats(-1, 20))
def test_a_value_between_readings_is_that_of_numpy(usage: Usage, moment: float) -> None:
    expected = np.interp(moment, usage.at_s, usage.cpu_us)
    assert between(usage.at_s, usage.cpu_us, moment) == pytest.approx(float(expected), rel=1e-12)


@given(st.lists(usages(), min_size=1, max_size=5))
def test_a_course_stays_inside_what_was_read(runs: list[Usage]) -> None:
    course = usage_course("debian-12", runs, 0.25)
    assert course.runs == len(runs)
    read = [kib / 1024 for usage in runs for kib in usage.memory_kib]
    for point in course.memory_mib:
        assert min(read) - 1e-6 <= point.low <= point.middle <= point.high <= max(read) + 1e-6
    for point in course.cpus_busy:
        assert -1e-6 <= point.low <= point.middle <= point.high <= 2 + 1e-6


@given(usages())
def test_the_cpu_time_of_the_steps_is_that_of_the_run(usage: Usage) -> None:
    points = usage_course("debian-12", [usage], 0.25).cpus_busy
    left_s = usage.at_s[-1] - points[-1].at_s
    total_s = sum(point.middle * 0.25 for point in points)
    assert total_s == pytest.approx(usage.cpu_us[-1] / 1e6, abs=2 * left_s + 1e-6)


def with_usage() -> ReportData:
    """The first row busy half of the time, each later one more, with memory that grows."""
    samples = tuple(
        sample.model_copy(
            update={
                "usage": tuple(
                    Usage(
                        at_s=tuple(0.25 * n for n in range(13)),
                        cpu_us=tuple(0.25e6 * n * share for n in range(13)),
                        memory_kib=tuple(51_200 + 1_024 * n for n in range(13)),
                    )
                    for share in (0.5 + 0.1 * LINE.index(sample.candidate_id),)
                )
            }
        )
        for sample in BARE.samples
    )
    sections = tuple(
        Section(comparison=one.comparison, usage=usage_courses(one.comparison, samples))
        for one in BARE.sections
    )
    return BARE.model_copy(update={"sections": sections, "samples": samples})


def test_the_page_draws_cpu_and_memory_of_each_workload() -> None:
    data = with_usage()
    charts = usage_charts(data.sections[0].comparison, data.sections[0].usage)
    assert [chart.title.split(" in ")[0] for chart in charts[:2]] == ["CPUs busy", "memory"]
    assert "0.500 at first, 0.500 after 3.00 s, highest 0.500" in charts[0].description
    assert "51.0 MiB at first, 62.0 MiB after 3.00 s" in charts[1].description
    page = render_html(data)
    assert len(re.findall("in the course of a run, [a-z-]+</title>", page)) == len(charts)
    assert ReportData.model_validate_json(data.model_dump_json()) == data


def test_without_readings_nothing_is_said() -> None:
    assert BARE.sections[0].usage == ()
    assert "CPU and memory over time" not in render_html(BARE)


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(render_html(with_usage())) == []
