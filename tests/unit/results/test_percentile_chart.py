"""The facts of latencies by percentile: exact together, enclosed by their samples, told in time."""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import DEBIAN, reported
from seen_page import seen_page
from shipped import MATRIX

from dsharness.matrix.loader import find_workload
from dsharness.model import Latencies, Sample
from dsresults.compare.latency_curves import (
    LatencyCurve,
    OperationLatencies,
    drawn_curves,
    latency_curve,
    latency_curves,
    percentile_chart,
)
from dsresults.page.chart import AREA, MOST_LINES, NAME_HEIGHT, Chart, round_values, spread
from dsresults.report import ReportData, render_html
from dsresults.report.report_data import Section

COUNTS = st.dictionaries(st.integers(1, 10**6), st.integers(1, 5000), min_size=1, max_size=20)
BARE = reported(DEBIAN)
LINE = BARE.sections[0].comparison.line


def timed(sample: Sample, *counts: dict[int, int]) -> Sample:
    kinds = ("search", "bind")
    took = {kind: Latencies.of(each) for kind, each in zip(kinds, counts, strict=False)}
    return sample.model_copy(update={"latencies": took})


def curve_of(*parts: dict[int, int]) -> LatencyCurve:
    curve = latency_curve("debian-12", [Latencies.of(part) for part in parts])
    assert curve is not None
    return curve


def with_times() -> ReportData:
    """Searches and binds of each sample, the later rows slower, and one search in 500 stalled."""
    samples = tuple(
        timed(
            sample,
            {
                (200 + 7 * at) * (1 + LINE.index(sample.candidate_id)): 500 if at < 10 else 10
                for at in range(11)
            },
            {40_000 + sample.turn: 150},
        )
        for sample in BARE.samples
    )
    sections = tuple(
        Section(comparison=s.comparison, latencies=latency_curves(s.comparison, samples))
        for s in BARE.sections
    )
    return BARE.model_copy(update={"samples": samples, "sections": sections})


def drawn(data: ReportData) -> list[tuple[OperationLatencies, Chart]]:
    (section,) = data.sections
    charts = [
        (each, percentile_chart(each, drawn_curves(section.comparison, each)))
        for each in section.latencies
    ]
    return [(each, chart) for each, chart in charts if chart is not None]


def places(points: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (each.split(",") for each in points.split())]


@given(st.lists(COUNTS, min_size=1, max_size=4))
def test_percentiles_of_all_are_those_of_one_merged_histogram(parts: list[dict[int, int]]) -> None:
    merged = curve_of(*parts)
    whole = Latencies.merged(Latencies.of(part) for part in parts)
    alone = latency_curve("one", [whole])
    assert alone is not None
    assert [(each.percent, each.us) for each in merged.percentiles] == [
        (each.percent, each.us) for each in alone.percentiles
    ]
    assert (merged.operations, merged.max_us) == (whole.count, whole.at_us(100))
    found = whole.counts
    for each in merged.percentiles:
        wanted = each.percent * merged.operations / 100
        assert sum(n for us, n in found.items() if us <= each.us) >= wanted - 1e-3
        assert sum(n for us, n in found.items() if us < each.us) < wanted + 1e-3


@given(st.lists(COUNTS, min_size=2, max_size=4))
def test_times_rise_and_the_samples_enclose_them(parts: list[dict[int, int]]) -> None:
    known = curve_of(*parts).percentiles
    assert [each.percent for each in known] == sorted(each.percent for each in known)
    assert [each.us for each in known] == sorted(each.us for each in known)
    for each in known:
        if each.low_us is not None and each.high_us is not None:
            assert each.low_us <= each.us <= each.high_us


@pytest.mark.parametrize(
    ("operations", "given"),
    [(9, []), (10, [50.0]), (200, [50.0, 90.0]), (500, [50.0, 90.0, 99.0]), (4999, [50, 90, 99])],
)
def test_no_percentile_of_too_few_operations(operations: int, given: list[float]) -> None:
    curve = curve_of(dict.fromkeys(range(1, operations + 1), 1))
    asked = [percent for percent in (50.0, 90.0, 99.0, 99.9) if curve.at(percent)]
    assert asked == given
    assert curve.max_us == pytest.approx(operations, rel=1e-3)


def test_a_short_sample_ends_the_band_and_one_sample_has_none() -> None:
    known = curve_of({5: 1000, 9: 1000}, {6: 10}).percentiles
    ends = [each.percent for each in known if each.low_us is not None]
    assert ends[-1] == 90.0
    assert known[-1].percent > 99
    assert all(each.low_us is None for each in curve_of({5: 1000}).percentiles)


def test_a_histogram_that_cannot_be_read_is_counted_and_left_out() -> None:
    good, bad = Latencies.of({5: 100}), Latencies(encoded="HISTFAAA")
    curve = latency_curve("debian-12", [good, bad])
    assert curve is not None
    assert (curve.samples, curve.unread, curve.operations) == (1, 1, 100)
    assert latency_curve("debian-12", [bad]) is None


def test_a_schedule_has_three_kinds_of_times_each_with_its_curves() -> None:
    def scheduled(sample: Sample) -> Sample:
        """Ten times as long from when it was due as from when it was sent."""
        due, sent, late = (Latencies.of({us: 500}) for us in (2000, 200, 30))
        changes = {"latencies": {"search": due}, "sent": {"search": sent}, "late": late}
        load = find_workload(MATRIX, "search-schedule")
        return sample.model_copy(update=changes | {"workload": load})

    comparison = BARE.sections[0].comparison
    found = latency_curves(comparison, [scheduled(sample) for sample in BARE.samples])
    assert len({each.since for each in found}) == 3, "each says what its times are"
    said = {
        each.operation: (each.scheduled, each.curves[0].max_us)
        for each in found
        if each.campaign_id == comparison.columns[0].campaign_id
    }
    assert said == {
        "search": (True, pytest.approx(2000, rel=1e-2)),
        "search once sent": (False, pytest.approx(200, rel=1e-2)),
        "the load itself": (False, pytest.approx(30, rel=1e-2)),
    }


def test_each_kind_has_a_chart_whose_lines_rise_within_their_bands() -> None:
    data = with_times()
    charts = drawn(data)
    assert [(each.workload_id, each.operation) for each, _ in charts] == [
        ("bind-random", "search"), ("bind-random", "bind"),
        ("bind-one", "search"), ("bind-one", "bind"),
    ]  # fmt: skip
    for _, chart in charts:
        texts = chart.find("text", "tick")
        below = [mark.text for mark in texts if mark.get("text-anchor") == "middle"]
        assert below[:3] == ["0", "50", "90"]
        assert sum(mark.get("text-anchor") == "end" for mark in texts) >= 2
        for line in chart.find("polyline", "curve"):
            points = places(line.get("points", ""))
            assert points == sorted(points, key=lambda place: (place[0], -place[1]))
        for line in (*chart.find("polyline"), *chart.find("polygon")):
            for x, y in places(line.get("points", "")):
                assert AREA.left <= x <= AREA.right
                assert AREA.top <= y <= AREA.bottom
    lines = charts[0][1].find("polyline", "curve")
    heights = [places(line.get("points", ""))[-1][1] for line in lines]
    assert heights == sorted(heights, reverse=True), "slower is higher"


def test_of_many_candidates_the_ends_and_the_step_are_drawn() -> None:
    (section,) = with_times().sections
    latencies = section.latencies[0]
    found = section.comparison.columns[0].boundary
    assert found is not None
    extra = tuple(
        latencies.curves[0].model_copy(update={"candidate": f"more-{at}"})
        for at in range(MOST_LINES)
    )
    first, *others = latencies.curves
    many = latencies.model_copy(update={"curves": (first, *extra, *others)})
    names = [curve.candidate for curve in drawn_curves(section.comparison, many)]
    assert names == [
        name for name in LINE if name in {LINE[0], LINE[-1], found.before, found.after}
    ]


@given(st.lists(st.floats(AREA.top, AREA.bottom), min_size=1, max_size=MOST_LINES))
def test_no_name_is_on_another(ends: list[float]) -> None:
    names = sorted(spread(ends))
    assert names[0] >= AREA.top - 0.1
    assert names[-1] <= AREA.bottom
    gaps = (after - before for before, after in pairwise(names))
    assert all(gap >= NAME_HEIGHT - 0.2 for gap in gaps)


@given(st.floats(0.01, 1e6), st.floats(2.0, 1e6))
def test_an_axis_has_two_marks_at_least(low: float, span: float) -> None:
    assert 2 <= len(round_values(low, low * span)) <= 9


def test_the_page_names_each_chart_and_says_its_figures_in_a_table() -> None:
    page = render_html(with_times())
    pictures = [ET.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    charts = [svg for svg in pictures if (svg.findtext("title") or "").startswith("Latency of")]
    assert len(charts) == 4
    for svg in charts:
        named = [e.get("id") for e in svg if e.tag in {"title", "desc"}]
        assert svg.get("aria-labelledby", "").split() == named
        assert all(group.findtext("title") for group in svg.findall("g"))
    table = next(t for t in seen_page(page).all("table") if "p99.9" in t.text)
    headings, first, *_ = table.rows
    assert headings == ["Candidate", "p50", "p90", "p99", "p99.9", "max"]
    assert first[0].startswith(LINE[0])
    assert first[1] == "0.235 0.235 to 0.235"
    binds = [t for t in seen_page(page).all("table") if "p99.9" in t.text][1]
    assert binds.rows[1][4] == "\u2013", "a few hundred binds have no p99.9"


def test_json_has_the_figures() -> None:
    found = with_times().model_dump(mode="json")["sections"][0]["latencies"][0]["curves"][0]
    assert found["candidate"] == LINE[0]
    assert {"percent": 50.0, "us": 235.0, "low_us": 235.0, "high_us": 235.0} in found["percentiles"]
    assert ReportData.model_validate_json(with_times().model_dump_json()) == with_times()


def test_without_histograms_nothing_is_said_of_latency() -> None:
    assert BARE.sections[0].latencies == ()
    assert "Latency by percentile" not in render_html(BARE)
