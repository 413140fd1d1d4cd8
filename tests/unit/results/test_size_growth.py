"""Growth with size: laws of the exponent, its comparison of rows, the text and the page."""

from __future__ import annotations

import math
import random

import pytest
from accessibility import needs_browser, serious
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind
from seen_page import seen_page
from worlds import sample_of, with_metric

from dsharness.measure.metrics import COST, GROWTH, MEMORY, RATE
from dsharness.model import Sample
from dsresults.compare.comparison_table import Estimate
from dsresults.compare.size_growth import (
    SizeGrowth,
    exponent_of,
    grown,
    growth_chart,
    growth_sentences,
    tells_nothing,
)
from dsresults.page.chart import AREA
from dsresults.page.page_files import write_answer
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of

SIZES = (1000, 10_000, 100_000)


def runs(
    row: str, exponent: float, sizes: tuple[int, ...] = SIZES, noise: float = 0.02, number: int = 5
) -> dict[int, list[Sample]]:
    """A cost of 1 at the first size that grows by that power."""
    chance = random.Random(f"{row}/{exponent}")
    return {
        users: [
            sample_of(row, (users / sizes[0]) ** exponent * chance.lognormvariate(0, noise), turn)
            for turn in range(number)
        ]
        for users in sizes
    }


def together(*each: dict[int, list[Sample]]) -> dict[int, list[Sample]]:
    return {users: [sample for one in each for sample in one[users]] for users in each[0]}


@given(st.floats(-2, 2), st.floats(0.001, 1000), st.sets(st.integers(1, 9_999_999), min_size=2))
def test_a_power_of_the_size_has_that_exponent(
    exponent: float, cost: float, sizes: set[int]
) -> None:
    logs = {users: [math.log(cost) + exponent * math.log(users)] * 3 for users in sorted(sizes)}
    found = exponent_of(logs)
    assert found.value == pytest.approx(exponent, abs=1e-6)
    assert found.interval is not None
    assert found.interval == pytest.approx((exponent, exponent), abs=1e-4)


@pytest.mark.filterwarnings("ignore:Precision loss")
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9), st.lists(st.floats(-1, 1), min_size=2))
def test_between_two_sizes_it_is_the_difference_of_means_with_its_interval(
    small: list[float], large: list[float]
) -> None:
    """By SciPy; its degrees of freedom are no whole number, and an interval is never narrower."""
    found = exponent_of({1: small, 10: large})
    mean = (sum(large) / len(large) - sum(small) / len(small)) / math.log(10)
    assert found.value == pytest.approx(mean, abs=1e-9)
    if len(set(small)) > 1 or len(set(large)) > 1:
        theirs = ttest_ind(large, small, equal_var=False).confidence_interval(0.95)
        if math.isfinite(theirs.low) and theirs.high - theirs.low > 1e-6:
            assert found.interval is not None
            assert found.interval[0] <= theirs.low / math.log(10) + 1e-9
            assert found.interval[1] >= theirs.high / math.log(10) - 1e-9


def test_its_interval_holds_the_truth_as_often_as_it_says() -> None:
    chance, held = random.Random(23), 0
    for _ in range(400):
        logs = {s: [0.7 * math.log(s) + chance.gauss(0, 0.05) for _ in range(4)] for s in SIZES}
        interval = exponent_of(logs).interval
        assert interval is not None
        held += interval[0] <= 0.7 <= interval[1]
    assert 0.93 <= held / 400 <= 0.99


def test_a_row_that_grows_more_is_told_from_one_that_does_not() -> None:
    taken = together(runs("a", 0.0), runs("b", 0.3), runs("c", 0.001), runs("d", -0.4))
    first, more, same, less = grown(COST, ("a", "b", "c", "d"), taken, {})
    assert (first.more, first.grows_more) == (None, None)
    assert [row.grows_more for row in (more, same, less)] == [True, None, False]
    assert more.more is not None
    assert more.more.value == pytest.approx(0.3, abs=0.02)
    assert more.times == pytest.approx(4, rel=0.1)
    assert [each.users for each in more.points] == list(SIZES)
    assert more.points[0].exponent is None
    assert more.points[2].exponent is not None


def test_what_is_small_is_no_difference_however_sure() -> None:
    taken = together(runs("a", 0.0, noise=1e-6), runs("b", 0.01, noise=1e-6))
    _, row = grown(COST, ("a", "b"), taken, {})
    assert row.more is not None
    assert row.more.interval is not None
    assert row.more.interval[0] > 0
    assert row.grows_more is None  # 4.7 % over all sizes


def test_an_exponent_that_may_be_anything_is_none() -> None:
    taken = runs("a", 0.5, noise=2.0, number=3)
    found = found_of(taken, "a")
    (sentence,) = growth_sentences(found)
    assert sentence.startswith("a: cannot tell how cost grows with size: to the power ")
    assert found.inconclusive
    assert tells_nothing(Estimate(value=0.5, interval=(-0.43, 1.56)))
    assert not tells_nothing(Estimate(value=0.5, interval=(-0.4, 0.5)))
    assert not tells_nothing(Estimate(value=1.8, interval=(0.9, 2.7)))  # it does grow
    assert not tells_nothing(Estimate(value=0.5))


def test_a_size_without_a_run_is_no_value_and_no_growth() -> None:
    taken = runs("a", 1.0)
    taken[10_000] = [
        each.model_copy(update={"invalid": ("the server died",), "log": "/logs/a.log"})
        for each in taken[10_000]
    ]
    (row,) = grown(COST, ("a",), taken, {})
    assert row.points[1].value is None
    assert row.points[1].note == "none of 5 runs can be used: the server died (/logs/a.log)"
    assert row.exponent is not None
    assert row.exponent.value == pytest.approx(1, abs=0.05)
    assert found_of(taken, "a").inconclusive
    (row,) = grown(COST, ("a",), {1000: taken[1000], 10_000: taken[10_000]}, {})
    assert row.exponent is None


def test_a_row_that_cannot_be_made_at_a_size_says_so_and_the_others_answer() -> None:
    taken = together(runs("a", 1.0), runs("b", 1.0))
    taken[10_000] = [each for each in taken[10_000] if each.candidate_id == "a"]
    first, second = grown(COST, ("a", "b"), taken, {10_000: {"b": "ldif2db was killed"}})
    assert [each.note for each in first.points] == ["", "", ""]
    assert [each.note for each in second.points] == ["", "ldif2db was killed", ""]
    assert second.exponent is not None


def test_a_value_of_nothing_has_no_logarithm() -> None:
    taken = {
        users: [with_metric(each, GROWTH, 0.0) for each in group]
        for users, group in runs("a", 0.0).items()
    }
    (row,) = grown(GROWTH, ("a",), taken, {})
    assert {each.note for each in row.points} == {
        "no run has a growth/op above 0 that says something of the server"
    }
    (row,) = grown(MEMORY, ("a",), taken, {})
    assert row.exponent is None


def test_a_load_that_was_the_limit_says_nothing_of_a_rate() -> None:
    taken = runs("a", 1.0)
    taken[1000] = [each.model_copy(update={"load_bound": True}) for each in taken[1000]]
    (row,) = grown(RATE, ("a",), taken, {})
    assert [each.value is None for each in row.points] == [True, False, False]
    assert row.exponent is not None
    assert row.exponent.value == pytest.approx(-1, abs=0.05)


def found_of(taken: dict[int, list[Sample]], *rows: str) -> SizeGrowth:
    return SizeGrowth(
        workload_id="w",
        title="a <b> load",
        metric="cost",
        asked_runs=5,
        measured_from="2026-01-01T00:00:00+00:00",
        measured_until="2026-01-01T00:01:00+00:00",
        rows=grown(COST, rows, taken, {}),
    )


def two_rows() -> SizeGrowth:
    taken = together(runs("debian-12", 0.02), runs("debian-13", 0.5))
    gone = [each for each in taken[10_000] if each.candidate_id == "debian-12"]
    return found_of({**taken, 10_000: gone}, "debian-12", "debian-13")


def test_the_answer_as_text() -> None:
    assert_golden("report/sizes.txt", text_of(two_rows().page()) + "\n")


def test_the_chart_is_straight_where_growth_is_a_power() -> None:
    chart = growth_chart(found_of(runs("a", 0.5, noise=0.0), "a"))
    assert chart is not None
    (line,) = chart.find("polyline")
    (x1, y1), (x2, y2), (x3, y3) = (
        tuple(float(each) for each in place.split(",")) for place in line.get("points", "").split()
    )
    assert AREA.left < x1 < x2 < x3 < AREA.right
    assert AREA.top < y3 < y2 < y1 < AREA.bottom
    assert (x2 - x1, y2 - y1) == pytest.approx((x3 - x2, y3 - y2), abs=0.3)
    below = [mark.text for mark in chart.find("text") if mark.get("text-anchor") == "middle"]
    assert below == ["1,000", "10,000", "100,000", "users of the directory"]
    assert sum(mark.get("text-anchor") == "end" for mark in chart.find("text")) >= 2


def test_the_page_has_a_table_for_each_row_and_escapes_all(tmp_path) -> None:
    found = two_rows()
    page = write_answer(tmp_path / "new", "sizes", found)
    html = page.read_text(encoding="utf-8")
    assert "a &lt;b&gt; load" in html
    assert "<b>" not in html
    first, second = seen_page(html).all("table")
    assert [row[0] for row in first.rows] == ["users", "1,000", "10,000", "100,000"]
    assert second.rows[2][-1] == "not measured"
    assert html.count("<polyline") == 2
    assert "http" not in html.replace("http-equiv", "")
    stored = (tmp_path / "new" / "sizes.json").read_text(encoding="utf-8")
    assert SizeGrowth.model_validate_json(stored) == found


def test_a_page_without_any_growth_is_a_page() -> None:
    html = html_of(found_of({1000: [], 10_000: []}, "a").page())
    assert "<polyline" not in html
    assert "not known: fewer than two sizes have a cost" in html


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(html_of(two_rows().page())) == []
