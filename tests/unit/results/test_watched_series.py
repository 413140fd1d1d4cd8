"""What a watch remembers: a pinned reference, one alarm for one cause, and what takes it back."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import Finding
from dsresults.report.watch_page import render_watch, told_watch, watch_state
from dsresults.watched_series import (
    AlarmEvent,
    AlarmState,
    WatchedSeries,
    WatchedTip,
    alarms_of,
    next_reference,
    points_of,
    seen_already,
    sighted,
    taken_back,
    tips_of,
)

MAIN = WatchedSeries(watch="w", branch="main", workload="bind-one", metric="cost")
STABLE = MAIN.model_copy(update={"branch": "stable"})
BEGIN = datetime(2026, 11, 27, 6, tzinfo=UTC)


def tip(number: int, direction: str = "none", **changes: object) -> WatchedTip:
    facts = {
        "series": MAIN,
        "at": (BEGIN + timedelta(hours=number)).isoformat(timespec="milliseconds"),
        "reference": 40 * "0",
        "tip": f"{number:040x}",
        "direction": direction,
        "effect": 1.5 if direction in {"slower", "faster"} else None,
        "interval": (1.4, 1.6) if direction in {"slower", "faster"} else None,
        "smallest_pct": 2.0,
        "summary": direction,
    }
    return WatchedTip.model_validate(facts | changes)


def test_a_reference_stays_pinned_until_a_difference_is_found() -> None:
    quiet = [tip(1), tip(2), tip(3, "unknown"), tip(4, "impossible")]
    assert next_reference([], "3.1.0") == "3.1.0"
    assert next_reference(quiet, "3.1.0") == "3.1.0"
    named = tip(5, "slower", named=40 * "a")
    assert next_reference([*quiet, named], "3.1.0") == 40 * "a"
    assert next_reference([named, tip(6)], "3.1.0") == 40 * "a"
    several = tip(7, "faster")
    assert next_reference([named, several], "3.1.0") == several.tip


def test_a_tip_is_looked_at_once_unless_its_answer_is_open() -> None:
    assert not seen_already([], tip(1).tip)
    assert seen_already([tip(1)], tip(1).tip)
    assert seen_already([tip(1, "impossible")], tip(1).tip), "until the branch grows"
    assert not seen_already([tip(1, "unknown")], tip(1).tip)
    assert not seen_already([tip(1)], tip(2).tip)


def events_as_stored(*events: AlarmEvent | None) -> list[Finding]:
    return [each.finding for each in events if each]


def test_only_a_slower_tip_is_an_alarm_and_a_proof_names_it() -> None:
    assert [sighted([], tip(1, each)) for each in ("none", "faster", "unknown")] == [None] * 3
    unnamed = sighted([], tip(1, "slower"))
    assert (unnamed.state, unnamed.alarm) == (AlarmState.CONFIRMED, tip(1).tip[:12])
    doubted = sighted([], tip(1, "slower", named=40 * "a", proved=False))
    assert doubted.state is AlarmState.CONFIRMED
    named = sighted([], tip(1, "slower", named=40 * "a", proved=True), title="t", text="x")
    assert (named.state, named.alarm, named.text) == (AlarmState.NAMED, 12 * "a", "x")


def test_the_same_change_on_another_branch_is_the_same_alarm() -> None:
    first = sighted([], tip(1, "slower", named=40 * "a", proved=True), same=(40 * "b",))
    (alarm,) = alarms_of(events_as_stored(first))
    elsewhere = tip(2, "slower", series=STABLE, named=40 * "b", proved=True)
    second = sighted([alarm], elsewhere, same=(40 * "a", 40 * "b"))
    assert second.alarm == alarm.id
    (whole,) = alarms_of(events_as_stored(first, second))
    assert [each.series.branch for each in whole.sightings] == ["main", "stable"]
    other = sighted([alarm], tip(3, "slower", named=40 * "c", proved=True))
    assert other.alarm != alarm.id


@pytest.mark.parametrize(
    ("decided", "then"),
    [("accepted", "accepted"), ("wont-fix", "wont-fix"), ("fixed", "named"), ("named", "named")],
)
def test_what_a_person_decided_stays_unless_it_was_fixed(decided: str, then: str) -> None:
    first = sighted([], tip(1, "slower", named=40 * "a", proved=True))
    said = AlarmEvent(alarm=first.alarm, at=tip(2).at, state=AlarmState(decided))
    alarms = alarms_of(events_as_stored(first, said))
    again = sighted(alarms, tip(3, "slower", series=STABLE, named=40 * "a", proved=True))
    assert again.state == then


@pytest.mark.parametrize(("effect", "fixed"), [(1.5, True), (1.3, True), (1.1, False)])
def test_a_change_to_the_better_ends_an_alarm_that_it_takes_back(effect, fixed) -> None:
    alarms = alarms_of(events_as_stored(sighted([], tip(1, "slower", named=40 * "a"))))
    better = tip(2, "faster", effect=effect)
    assert bool(taken_back(alarms, better)) is fixed
    assert not taken_back(alarms, better.model_copy(update={"series": STABLE}))
    assert not taken_back(alarms, tip(2, "slower"))
    if fixed:
        (event,) = taken_back(alarms, better)
        (ended,) = alarms_of(events_as_stored(*[a.events[0] for a in alarms], event))
        assert (ended.state, ended.state.open) == (AlarmState.FIXED, False)


STEPS = st.lists(
    st.tuples(st.sampled_from(["none", "slower", "faster", "unknown"]), st.floats(1.01, 9)),
    min_size=1,
    max_size=20,
)


@given(STEPS)
def test_levels_are_the_product_of_what_was_found(steps: list[tuple[str, float]]) -> None:
    tips = [
        tip(n, word, effect=size, interval=(size * 0.99, size * 1.01))
        if word in {"slower", "faster"}
        else tip(n, word)
        for n, (word, size) in enumerate(steps)
    ]
    points = points_of(tips)
    assert len(points) == sum(word != "unknown" for word, _ in steps)
    whole = math.exp(sum(each.log_ratio for each in tips))
    if points:
        assert points[-1].ratio == pytest.approx(whole)
    for point in points:
        assert point.low <= point.ratio * 1.0001
        assert point.high >= point.ratio * 0.9999


def test_the_page_tells_alarms_and_series() -> None:
    slow = tip(2, "slower", named=40 * "a", proved=True, summary="<b>slower</b>")
    tips = [tip(1), slow, tip(3)]
    event = sighted([], slow, title="bind costs 1.5 times more CPU", text="a `<script>`")
    findings = [*(each.finding for each in tips), *events_as_stored(event)]
    assert tips_of(findings, "w") == tuple(tips)
    assert tips_of(findings, "other") == ()
    state = watch_state("w", tips_of(findings, "w"), alarms_of(findings))
    assert state.answer.startswith("1 open: aaaaaaaaaaaa; 3 tips in 1 series")
    page = render_watch(state)
    assert "<script>" not in page
    assert "<b>slower" not in page
    assert page.count("<polyline") == 1
    assert "aaaaaaaaaaaa  named      bind costs 1.5 times" in "\n".join(told_watch(state))


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    slow = tip(2, "slower", named=40 * "a", proved=True)
    event = sighted([], slow, title="bind costs 1.5 times more CPU", text="a text")
    alarms = alarms_of(events_as_stored(event))
    assert serious(render_watch(watch_state("w", [tip(1), slow, tip(3)], alarms))) == []
