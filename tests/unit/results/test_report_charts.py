from __future__ import annotations

import time

import pytest
from reported import DEBIAN, decided_by, reported, with_gaps, without_difference

from dsresults.report.html_page import LEFT, RIGHT, charts, spark

CASES = [lambda: reported(DEBIAN), with_gaps, without_difference]
CASES += [lambda metric=metric: decided_by(metric) for metric in ("latency", "rate", "client-cpu")]


@pytest.mark.parametrize("case", CASES)
def test_everything_lies_within_the_drawing(case):
    data = case()
    for chart in charts(data.sections[0].comparison, data.samples):
        for mark in chart.marks:
            found = (mark.x, mark.low, mark.high, *mark.dots)
            assert all(LEFT <= x <= RIGHT for x in found if x is not None)
            assert mark.x is None or mark.low <= mark.x <= mark.high
        assert len(chart.ticks) >= 2


def test_dearer_is_further_right_and_both_loads_share_the_axis():
    data = reported(DEBIAN)
    random, one = charts(data.sections[0].comparison, data.samples)
    xs = {mark.candidate: mark.x for mark in random.marks}
    assert xs["debian-12"] < xs["debian-11"] < xs["debian-13"]
    assert random.ticks == one.ticks
    assert abs(xs["debian-13"] - one.marks[2].x) < 5


@pytest.mark.parametrize(("metric", "unit", "right"), [("latency", " ms", 1), ("rate", "/s", 0)])
def test_what_decided_is_drawn_in_its_unit(metric, unit, right):
    data = decided_by(metric)
    (chart,) = charts(data.sections[0].comparison, data.samples)
    assert chart.title.endswith("one operation, bind-random" if right else "second, bind-random")
    assert all(tick.label.endswith(unit) for tick in chart.ticks)
    assert all(mark.label.endswith(unit) for mark in chart.marks)
    xs = [mark.x for mark in chart.marks]
    assert xs.index(max(xs)) == right


def test_the_boundary_is_an_edge_or_a_band():
    data = reported(DEBIAN)
    edge = charts(data.sections[0].comparison, data.samples)[0]
    assert edge.edge.y == edge.edge.end_y
    assert edge.marks[1].y < edge.edge.y < edge.marks[2].y
    data = with_gaps()
    band = charts(data.sections[0].comparison, data.samples)[0]
    assert band.marks[0].y < band.edge.y < band.marks[1].y
    assert band.marks[2].y < band.edge.end_y < band.marks[3].y


def test_no_boundary_is_drawn_where_none_was_found():
    data = without_difference()
    assert all(c.edge is None for c in charts(data.sections[0].comparison, data.samples))


def test_no_chart_without_a_calibrator():
    data = reported(DEBIAN)
    bare = [sample.model_copy(update={"calibrator_us": None}) for sample in data.samples]
    assert charts(data.sections[0].comparison, bare) == ()


@pytest.mark.parametrize("rates", [(), (5.0,), (0.0, 0.0)])
def test_too_little_for_a_curve(rates):
    sample = reported(DEBIAN).samples[0].model_copy(update={"per_second": rates})
    assert spark(sample) is None


def test_a_curve_shades_its_warm_up():
    sample = reported(DEBIAN).samples[0]
    drawn = spark(sample)
    assert drawn is not None
    assert len(drawn.points.split()) == len(sample.per_second)


def test_a_curve_of_many_seconds_is_drawn_at_once_and_in_few_points():
    sample = reported(DEBIAN).samples[0]
    long = sample.model_copy(update={"per_second": tuple(float(i % 50) for i in range(300_000))})
    begun = time.process_time()
    drawn = spark(long)
    assert time.process_time() - begun < 2
    assert drawn is not None
    assert len(drawn.points.split()) <= 180
    assert "means of 1667 s" in drawn.description
