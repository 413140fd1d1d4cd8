"""Levels of load: laws of the knee, figures of a level, the page as it is drawn."""

from __future__ import annotations

import random

import pytest
from accessibility import needs_browser, serious
from goldens import assert_golden
from hypothesis import given
from hypothesis import strategies as st
from seen_page import seen_page
from worlds import sample_of

from dsharness.measure.metrics import LATENCY_P99, RATE
from dsharness.model import Latencies, Sample
from dsresults.compare.load_levels import (
    Knee,
    LoadLevel,
    LoadLevels,
    RowLevels,
    half_of,
    knee_of,
    level_of,
    levels_chart,
)
from dsresults.page.chart import AREA
from dsresults.page.page_files import write_answer
from dsresults.page.page_html import html_of
from dsresults.page.page_text import text_of


def level(
    asked: float, share: float = 1.0, p99_ms: float | None = 1.0, note: str = ""
) -> LoadLevel:
    return LoadLevel(
        asked_per_s=asked,
        runs=5,
        reached_per_s=share * asked,
        reached_low=share * asked,
        reached_high=share * asked,
        p99_us=None if p99_ms is None else 1000 * p99_ms,
        note=note,
        by_load=bool(note),
    )


LEVELS = st.lists(
    st.builds(
        level,
        st.integers(1, 5000).map(float),
        st.sampled_from([1.0, 0.98, 0.9, 0.3]),
        st.sampled_from([None, 1.0, 2.0, 2.9, 3.1, 50.0]),
        st.sampled_from(["", "", "", "the load was the limit"]),
    ),
    max_size=8,
    unique_by=lambda each: each.asked_per_s,
)


def past(each: LoadLevel, known: list[LoadLevel]) -> bool:
    """The rule, as the documentation says it."""
    lowest = min(known, key=lambda one: one.asked_per_s).p99_us
    slow = bool(lowest and each.p99_us) and (each.p99_us or 0) / (lowest or 1) > 3
    return (each.reached_per_s or 0) / each.asked_per_s < 0.97 or slow


@given(LEVELS)
def test_what_is_below_the_knee_is_kept_and_what_is_above_is_not(levels: list[LoadLevel]) -> None:
    knee, known = knee_of(levels), [each for each in levels if not each.note]
    rates = {each.asked_per_s: past(each, known) for each in known}
    above, at_most = knee.above_per_s, knee.at_most_per_s
    assert {above, at_most} - {None} <= rates.keys()
    if above is not None:
        assert not any(rates[rate] for rate in rates if rate <= above)
    if at_most is not None:
        assert all(rates[rate] for rate in rates if rate >= at_most)
        assert above is None or above < at_most
        assert knee.why
    elif known:
        assert not rates[max(rates)]
        assert bool(knee.why) is any(rates.values())


@given(LEVELS)
def test_the_interval_is_as_narrow_as_the_levels_allow(levels: list[LoadLevel]) -> None:
    knee, known = knee_of(levels), [each for each in levels if not each.note]
    ordered = sorted(known, key=lambda each: each.asked_per_s)
    answers = [past(each, known) for each in ordered]
    if answers != sorted(answers):
        return  # they contradict each other: the law above says what is left
    kept = [each.asked_per_s for each, is_past in zip(ordered, answers, strict=True) if not is_past]
    rest = [each.asked_per_s for each in ordered[len(kept) :]]
    assert knee.above_per_s == (kept[-1] if kept else None)
    assert knee.at_most_per_s == (rest[0] if rest else None)


@given(LEVELS, st.randoms(use_true_random=False), st.integers(6000, 7000))
def test_neither_order_nor_a_limit_of_the_load_moves_it(
    levels: list[LoadLevel], chance: random.Random, rate: int
) -> None:
    other = [*levels, level(float(rate), 0.1, 900.0, "the load was the limit")]
    chance.shuffle(other)
    assert knee_of(other) == knee_of(levels)
    assert half_of(other, knee_of(other)) == half_of(levels, knee_of(levels))


@given(LEVELS)
def test_half_of_it_is_the_nearest_level_that_is_known(levels: list[LoadLevel]) -> None:
    knee = knee_of(levels)
    half = half_of(levels, knee)
    if knee.above_per_s is None:
        assert half is None
        return
    assert half is not None
    wanted = knee.above_per_s / 2
    far = abs(half.asked_per_s - wanted)
    assert all(abs(each.asked_per_s - wanted) >= far for each in levels if not each.note)


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([], "knee not clear: no level says anything of the row"),
        ([level(600), level(1200)], "no knee up to 1,200/s"),
        (
            [level(600), level(1200, p99_ms=3.0), level(1800, 0.7)],
            "knee between 1,200 and 1,800/s: only 1,260/s are reached",
        ),
        (
            [level(600), level(1200, p99_ms=3.1)],
            "knee between 600 and 1,200/s: p99 is 3.10 ms, at the lowest 1.00 ms",
        ),
        ([level(600, 0.5)], "knee at 600/s or below: only 300/s are reached"),
        (
            [level(100), level(200, 0.9), level(300), level(400, 0.5)],
            "knee between 100 and 400/s: at 200/s only 180/s are reached, but not at 300/s",
        ),
        (
            [level(100), level(200, 0.9), level(300)],
            "knee not clear: at 200/s only 180/s are reached, but not at 300/s",
        ),
    ],
)
def test_a_knee_in_words(levels: list[LoadLevel], said: str) -> None:
    assert str(knee_of(levels)) == said


def run(turn: int, rate: float, slow_us: float = 900, **changes: object) -> Sample:
    """600 operations of two kinds, seven of which are slow."""
    took = {"search": Latencies.of({300.0: 400}), "bind": Latencies.of({500.0: 193, slow_us: 7})}
    metrics = {
        "rate": RATE.measured(rate),
        "latency-p99": LATENCY_P99.measured(slow_us),
        "cpu": RATE.measured(200.0),
    }
    facts = {"metrics": metrics, "latencies": took, "operations": 600, "duration_s": 0.6, **changes}
    return sample_of("r", 1.0, turn, **facts)


def test_a_level_is_the_median_of_its_runs_and_all_their_operations() -> None:
    spoiled = run(3, 1.0, invalid=("the server died",))
    found = level_of("r", 1000, [run(0, 999), run(1, 980, 7000), run(2, 1000), spoiled])
    assert (found.runs, found.reached_per_s) == (3, 999)
    assert (found.reached_low, found.reached_high) == (980, 1000)
    assert found.p99_us == 900  # of one run it was 7 ms
    assert found.cpus == pytest.approx(0.2)
    assert [each.percent for each in found.percentiles] == [50, 90, 99]  # too few beyond
    half = found.at(50)
    assert half is not None
    assert (half.us, found.max_us) == (pytest.approx(300, rel=2e-3), pytest.approx(7000, rel=2e-3))
    assert found.known
    assert level_of("r", 1000, [run(0, 999)]).p99_us == 900


def test_few_operations_have_no_p99() -> None:
    few = {"search": Latencies.of({300.0: 40})}
    found = level_of("r", 20, [run(turn, 20, latencies=few) for turn in range(5)])
    assert (found.p99_us, found.at(99.0)) == (None, None)
    assert found.at(50.0) is not None


LATE = "the load began half of its operations more than 3.0 ms late"


def test_a_load_that_is_late_never_counts_against_a_row() -> None:
    late = run(0, 700, invalid=(LATE,), disturbed=(LATE,), log="/logs/load.log")
    found = level_of("r", 1000, [late, late])
    assert found.note == f"the load was the limit at this level: {LATE} (/logs/load.log)"
    assert (found.known, found.by_load, found.failed) == (False, True, False)
    bound = [run(turn, 700, load_bound=True) for turn in range(3)]
    found = level_of("r", 1000, bound)
    assert (found.known, found.by_load, found.reached_per_s) == (False, True, 700)
    assert knee_of([level(500), found]) == Knee(above_per_s=500)


STARVED = {"taken_pct": 70.0, "server_waited_s": 0.5, "log": "/logs/load.log"}


def test_a_server_that_waited_for_a_cpu_has_no_figure() -> None:
    hungry = [run(turn, 300, **STARVED) for turn in range(4)]
    found = level_of("r", 1000, hungry)
    assert (found.known, found.failed, found.reached_per_s) == (False, True, None)
    assert found.note == (
        "none of 4 runs can be used: the server waited for a CPU that other programs had; others "
        "took 70 % of the server's CPUs (/logs/load.log)"
    )
    fed = level_of("r", 1000, [*hungry, run(4, 1000)])
    assert (fed.known, fed.runs, fed.reached_per_s) == (True, 1, 1000)


def test_a_row_that_fails_and_a_disturbance_are_told_with_the_log() -> None:
    died = run(0, 1.0, invalid=("the server died during the load",), log="/logs/r.log")
    found = level_of("r", 1000, [died])
    assert found.note == (
        "none of 1 run can be used: the server died during the load (/logs/r.log)"
    )
    assert (found.by_load, found.failed) == (False, True)
    late = run(1, 1.0, invalid=(LATE,), disturbed=(LATE,))
    assert level_of("r", 1000, [died, late]).failed
    assert level_of("r", 1000, []).failed


def measured(*rows: str) -> LoadLevels:
    def one(rate: float, slow_us: float) -> LoadLevel:
        runs = [run(turn, min(rate, 1000), slow_us) for turn in range(3)]
        return level_of("r", rate, runs)

    levels = [one(500, 900), one(1000, 1500), one(1500, 90_000)]
    return LoadLevels(
        workload_id="w",
        title="a <b> load",
        connections=16,
        asked_runs=3,
        measured_from="2026-01-01T00:00:00+00:00",
        measured_until="2026-01-01T00:01:00+00:00",
        rows=tuple(RowLevels.of(row, 1000.0, "", levels) for row in rows),
    )


def test_the_chart_has_two_lines_for_each_row_and_its_knee() -> None:
    chart = levels_chart(measured("debian-11", "debian-12-openldap"))
    assert chart is not None
    groups = chart.find("g")
    assert [group.get("class") for group in groups] == [
        "pattern-0 typical", "pattern-0", "pattern-1 typical", "pattern-1",
    ]  # fmt: skip
    for dots in (group.findall("circle") for group in groups):
        across = [float(dot.get("cx", "")) for dot in dots]
        assert across == sorted(across)
        assert all(AREA.left < x <= AREA.right for x in across)
        assert all(AREA.top <= float(dot.get("cy", "")) <= AREA.bottom for dot in dots)
    first, second = chart.find("polyline", "knee")
    assert (first.get("class"), second.get("class")) == ("knee pattern-0", "knee pattern-1")
    p99 = chart.find("polyline", "curve")[1].get("points", "").split()
    assert first.get("points", "").split() == p99[1:]
    marks = [mark.text for mark in chart.find("text", "tick")]
    assert [m for m in marks if m and m[0] in "015"][-4:] == [
        "0",
        "500",
        "1,000",
        "1,500",
    ]
    many = levels_chart(measured(*(f"row-{number}" for number in range(8))))
    assert many is not None
    assert len(many.find("g")) == 12
    assert "Not drawn: 2." in many.caption


def test_the_answer_as_text() -> None:
    """Also of a level that says nothing, and one whose load had no CPU left."""
    runs = [run(turn, 1600, 90_000, load_bound=True) for turn in range(3)]
    late = run(0, 700, invalid=(LATE,), disturbed=(LATE,), log="/logs/load.log")
    rows = measured("debian-11").rows[0].levels
    levels = [*rows, level_of("r", 2000, runs), level_of("r", 2500, [late])]
    found = measured().model_copy(
        update={"rows": (RowLevels.of("debian-11", 1000.0, "it may answer more", levels),)}
    )
    assert_golden("report/levels.txt", text_of(found.page()) + "\n")


def test_the_page_has_a_table_for_each_row_and_escapes_all(tmp_path) -> None:
    page = write_answer(tmp_path / "new", "levels", measured("debian-11", "debian-12"))
    html = page.read_text(encoding="utf-8")
    assert "a &lt;b&gt; load" in html
    assert "<b>" not in html
    first, second = seen_page(html).all("table")
    assert first.rows == second.rows
    assert [row[0] for row in first.rows] == ["asked", "500", "1,000", "1,500"]
    assert [row[7] for row in first.rows] == [
        "p99",
        *("0.900 0.900 to 0.900",),
        "1.50 1.50 to 1.50",
        "90.0 90.0 to 90.0",
    ]
    assert html.count("knee between 1,000 and 1,500/s") >= 4
    assert "http" not in html.replace("http-equiv", "")
    stored = (tmp_path / "new" / "levels.json").read_text(encoding="utf-8")
    assert LoadLevels.model_validate_json(stored) == measured("debian-11", "debian-12")


def with_levels(*levels: LoadLevel) -> LoadLevels:
    return measured().model_copy(update={"rows": (RowLevels.of("r", 10.0, "", levels),)})


@pytest.mark.parametrize(
    ("levels", "inconclusive"),
    [
        ([level(600), level(1200)], False),
        ([level(600), level(1200, note="the load was the limit")], False),
        ([level(1200, note="the load was the limit")], True),
        ([level(600), LoadLevel(asked_per_s=700, failed=True, note="the server died")], True),
    ],
)
def test_what_failed_and_what_says_nothing_is_no_answer(
    levels: list[LoadLevel], inconclusive: bool
) -> None:
    assert with_levels(*levels).inconclusive is inconclusive


def test_a_page_without_any_figure_is_a_page() -> None:
    html = html_of(with_levels(LoadLevel(asked_per_s=600, note="not measured")).page())
    assert "<svg" not in html.replace('<svg class="key', "")
    assert "knee not clear" in html


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(html_of(measured("debian-11", "debian-12").page())) == []
