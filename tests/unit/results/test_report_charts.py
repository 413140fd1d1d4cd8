from __future__ import annotations

import time

import pytest
from reported import DEBIAN, decided_by, reported, with_gaps, without_difference

from dsresults.report import render_html
from dsresults.report.answer_chart import answer_chart
from dsresults.report.answer_picture import AREA, MOST_SHOWN, drawn_of, pictures
from dsresults.report.evidence_section import spark
from dsresults.report.report_data import sentences

CASES = [lambda: reported(DEBIAN), with_gaps, without_difference]
CASES += [lambda metric=metric: decided_by(metric) for metric in ("latency", "rate", "client-cpu")]


def drawn(data):
    return pictures(data.sections[0].comparison, data.samples)


@pytest.mark.parametrize("case", CASES)
def test_everything_lies_within_the_drawing(case):
    for picture in drawn(case()):
        for place in picture.places:
            found = (place.y, place.low, place.high, *(dot.y for dot in place.dots))
            assert all(AREA.top <= y <= AREA.bottom for y in found if y is not None)
            assert all(dot.title.startswith("turn ") for dot in place.dots)
            assert place.y is None or place.high <= place.y <= place.low
            assert AREA.left < place.x < AREA.right
            assert AREA.chance_top <= place.bar_y <= AREA.chance_bottom
        assert len(picture.axis.marks) >= 2


def test_dearer_is_higher_and_both_loads_share_the_axis():
    random, one = drawn(reported(DEBIAN))
    ys = {place.candidate: place.y for place in random.places}
    assert ys["debian-12"] > ys["debian-11"] > ys["debian-13"]
    assert random.axis == one.axis
    assert abs(ys["debian-13"] - one.places[2].y) < 5


@pytest.mark.parametrize(("metric", "unit", "top"), [("latency", " ms", 1), ("rate", "/s", 0)])
def test_what_decided_is_drawn_in_its_unit(metric, unit, top):
    (picture,) = drawn(decided_by(metric))
    assert picture.title.endswith("one operation, bind-random" if top else "second, bind-random")
    assert all(mark.endswith(unit) for mark in picture.axis.marks.values())
    assert all(place.label.endswith(unit) for place in picture.places)
    ys = [place.y for place in picture.places]
    assert ys.index(min(ys)) == top


def test_the_right_axis_says_how_many_times_the_first_end():
    random, one = drawn(reported(DEBIAN))
    assert random.reference == one.reference == "debian-11"
    heights = {words: y for y, words in one.factors}
    assert abs(heights["1×"] - one.places[0].y) < 1  # noqa: RUF001
    assert heights["100×"] < heights["10×"] < heights["1×"]  # noqa: RUF001
    (rate,) = drawn(decided_by("rate"))
    heights = {words: y for y, words in rate.factors}
    assert heights["1×"] < heights["1.5×"], "fewer operations a second stand lower"  # noqa: RUF001


def test_a_row_has_its_version_below_its_name_unless_its_name_says_it():
    (picture, _) = drawn(reported(DEBIAN))
    assert [place.version for place in picture.places] == ["1.4.4.11", "2.3.1", "3.1.2", "3.3.1"]
    texts = [part.text for part in answer_chart(picture).find("text")]
    assert {"debian-13", "3.1.2"} <= set(texts)
    assert not picture.slanted


def test_the_boundary_is_an_edge_or_a_band():
    sharp = drawn(reported(DEBIAN))[0]
    assert sharp.edge.x == sharp.edge.end_x
    assert sharp.places[1].x < sharp.edge.x < sharp.places[2].x
    band = drawn(with_gaps())[0]
    assert band.places[0].x < band.edge.x < band.places[1].x
    assert band.places[2].x < band.edge.end_x < band.places[3].x


def test_a_second_step_says_which_way_it_goes_in_picture_and_sentence():
    data = reported(DEBIAN)
    (random, second), (one, later) = ((p, p.second_edges[0]) for p in drawn(data))
    assert second.label == "2.15 times faster from here on"
    assert random.places[0].x < second.x < random.places[1].x < random.edge.x
    assert later.label == "9.91 times slower from here on"
    assert one.edge.x < later.x
    first, other = sentences(data.sections[0].comparison)
    assert first.endswith("; debian-12: 2.15 times faster, a second step (100 %).")
    assert other.endswith("; debian-13: 9.91 times slower, a second step (100 %).")
    page = render_html(data)
    assert "A dashed line stands before the first that changed" in page
    assert "bars at the foot are chances" in page
    assert "debian-12: 2.15 times faster" in page


def test_the_chances_of_a_search_are_drawn():
    picture = drawn(reported(DEBIAN))[0]
    assert picture.believed
    chances = {place.candidate: place.chance for place in picture.places}
    assert chances["debian-13"] > 0.95
    assert picture.places[2].bar_height > picture.places[3].bar_height


def test_no_boundary_is_drawn_where_none_was_found():
    assert all(picture.edge is None for picture in drawn(without_difference()))


def test_no_picture_without_a_calibrator():
    data = reported(DEBIAN)
    bare = [sample.model_copy(update={"calibrator_us": None}) for sample in data.samples]
    assert pictures(data.sections[0].comparison, bare) == ()


def test_of_a_long_line_what_is_left_out_is_counted():
    line = [f"{number:012x}" for number in range(400)]
    found = reported(DEBIAN).sections[0].comparison.columns[0].boundary.model_copy(
        update={"before": line[250], "after": line[251], "step_chances": {line[251]: 1.0}}
    )  # fmt: skip
    shown = drawn_of(line, {line[at] for at in range(0, 400, 13)}, found)
    names = [each for each in shown if isinstance(each, str)]
    assert len(names) == MOST_SHOWN
    assert {line[0], line[249], line[250], line[251], line[252], line[-1]} <= set(names)
    left_out = [len(each) for each in shown if isinstance(each, tuple)]
    assert sum(left_out) + len(names) == len(line)
    assert drawn_of(line[:8], set(), None) == tuple(line[:8])


def test_the_answer_is_one_sentence_with_its_figure():
    first, _ = sentences(reported(DEBIAN).sections[0].comparison)
    assert first.startswith("With bind-random, debian-13 is ")
    assert " times slower than debian-12 (95 % interval " in first
    (band, *_) = sentences(with_gaps().sections[0].comparison)
    assert "one of " in band
    (none, *_) = sentences(without_difference().sections[0].comparison)
    assert "there is no difference between" in none
    (other,) = sentences(decided_by("latency").sections[0].comparison)
    assert " times " in other


@pytest.mark.parametrize("rates", [(), (5.0,), (0.0, 0.0)])
def test_too_little_for_a_curve(rates):
    sample = reported(DEBIAN).samples[0].model_copy(update={"per_second": rates})
    assert spark(sample) is None


def test_a_curve_shades_its_warm_up():
    sample = reported(DEBIAN).samples[0]
    drawn = spark(sample)
    assert drawn is not None
    assert len(drawn.find("polyline").get("points").split()) == len(sample.per_second)


def test_a_curve_of_many_seconds_is_drawn_at_once_and_in_few_points():
    sample = reported(DEBIAN).samples[0]
    long = sample.model_copy(update={"per_second": tuple(float(i % 50) for i in range(300_000))})
    begun = time.process_time()
    drawn = spark(long)
    assert time.process_time() - begun < 2
    assert drawn is not None
    assert len(drawn.find("polyline").get("points").split()) <= 180
    assert "means of 1667 s" in drawn.get("aria-label")
