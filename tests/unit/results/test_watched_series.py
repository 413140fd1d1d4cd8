"""What a watch remembers: a pinned reference, one alarm for one cause, and what takes it back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_values import sample as stored
from watched_tips import MAIN, STABLE, events_as_stored, tip

from dsharness.model import Finding, Machine, Sample
from dsresults.watch.alarms import (
    Alarm,
    AlarmEvent,
    AlarmState,
    alarms_of,
    searched,
    sighted,
    taken_back,
    unconfirmed,
)
from dsresults.watch.watched_series import (
    PackedTurns,
    WatchedTip,
    WatchedTurn,
    machine_shares,
    next_reference,
    points_of,
    seen_already,
    turns_of,
)


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


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
RUNS = st.tuples(NAMES, st.none() | st.floats(allow_nan=False, allow_infinity=False))
TURNS = st.builds(
    WatchedTurn,
    st.integers(0, 9),
    st.integers(0, 999),
    NAMES,
    st.floats(0, 1e6),
    st.lists(RUNS, max_size=4).map(tuple),
)


@given(st.lists(TURNS, max_size=6))
def test_turns_come_back_from_their_text_as_they_were(turns: list[WatchedTurn]) -> None:
    assert PackedTurns.of(turns).turns == tuple(turns)


def test_samples_of_a_turn_stand_together_and_their_time_counts_once() -> None:
    def sample(campaign: str, turn: int, row: str, second: int, **changes: object) -> Sample:
        at = f"2026-11-27T06:00:{second:02d}+00:00"
        facts = {"campaign_id": campaign, "candidate_id": row, "turn": turn, "started_at": at}
        return stored(f"{campaign}{turn}{row}", **facts, duration_s=4.0, **changes)

    samples = [
        sample("second", 0, "a", 30),
        sample("first", 1, "b", 13, invalid=("the server ended",)),
        sample("first", 1, "a", 10),
        sample("first", 0, "a", 0),
        sample("first", 0, "b", 0),
    ]
    found = turns_of(samples, ("first", "second"), "rate")
    assert [(each.campaign, each.number, each.seconds) for each in found] == [
        (0, 0, 4.0), (0, 1, 7.0), (1, 0, 4.0),
    ]  # fmt: skip
    rate = samples[0].value("rate")
    assert rate
    assert found[1].runs == (("b", None), ("a", rate))


def test_a_machine_s_noise_is_of_runs_of_the_same_candidate_in_the_same_campaign() -> None:
    def turn(campaign: int, number: int, *runs: tuple[str, float | None]) -> WatchedTurn:
        return WatchedTurn(campaign, number, "m", 5.0, runs)

    turns = [
        turn(0, 0, ("a", 100.0), ("b", 200.0)),
        turn(0, 1, ("a", 110.0), ("b", None)),
        turn(1, 0, ("a", 900.0), ("b", -1.0)),
        WatchedTurn(0, 2, "other", 5.0, ()),
    ]
    share, other = machine_shares(turns, [Machine(id="m", facts={"cpu_model": "A CPU"})])
    assert (share.id, share.text, share.turns, share.runs) == ("m", "A CPU", 3, 6)
    assert share.seconds == 15.0
    assert share.freedom == 1
    assert share.squares == pytest.approx(math.log(1.1) ** 2 / 2)
    assert (other.text, other.freedom) == ("", 0)


def told(*steps: tuple[str, str] | WatchedTip) -> list[Alarm]:
    """What becomes of alarms as a watch searches and answers, with what a person says between."""
    stored: list[Finding] = []
    for number, step in enumerate(steps):
        alarms = alarms_of(stored)
        if isinstance(step, WatchedTip):
            found = [sighted(alarms, step), *unconfirmed(alarms, step), *taken_back(alarms, step)]
        elif step[1] in {"new", "bisecting"}:
            found = [searched(alarms, step[0], MAIN, AlarmState(step[1]), "so far")]
        else:
            said = AlarmEvent(alarm=step[0], at=tip(90 + number).at, state=AlarmState(step[1]))
            found = [said]
        at = tip(number).at
        stored += events_as_stored(*(each and each.model_copy(update={"at": at}) for each in found))
    return list(alarms_of(stored))


SEEN, OTHER = tip(1).tip, tip(2).tip


@pytest.mark.parametrize(
    ("steps", "states", "events"),
    [
        ([(SEEN, "new")], ["new"], 1),
        ([(SEEN, "new"), (SEEN, "bisecting"), (SEEN, "bisecting")], ["bisecting"], 2),
        ([(SEEN, "new"), tip(1)], ["invalid"], 2),
        ([(SEEN, "new"), (SEEN, "bisecting"), tip(1, "unknown")], ["new"], 3),
        ([(SEEN, "new"), tip(1, "unknown")], ["new"], 1),
        ([(SEEN, "new"), (SEEN, "bisecting"), tip(1, "slower")], ["confirmed"], 3),
        ([(SEEN, "new"), tip(1, "slower", named=40 * "a", proved=True)], ["named"], 2),
        ([(SEEN, "new"), tip(2, "slower", named=40 * "a", proved=True)], ["named"], 2),
        ([(SEEN, "new"), tip(2)], ["invalid"], 2),
        ([(SEEN, "new"), tip(2, "slower", series=STABLE)], ["confirmed", "new"], 1),
        ([(SEEN, "new"), (SEEN[:12], "wont-fix"), (SEEN, "bisecting")], ["wont-fix"], 3),
        (
            [(SEEN, "new"), (SEEN[:12], "wont-fix"), tip(1, "slower", named=40 * "a", proved=True)],
            ["wont-fix"],
            3,
        ),
        ([tip(1, "slower", named=OTHER, proved=True), (OTHER, "new")], ["named"], 2),
        ([tip(1, "slower"), tip(2, "faster"), (SEEN, "new")], ["new"], 3),
    ],
)
def test_what_is_searched_for_is_one_alarm_from_its_first_moment_to_its_name(
    steps: list[tuple[str, str] | WatchedTip], states: list[str], events: int
) -> None:
    alarms = told(*steps)
    assert [alarm.state.value for alarm in alarms] == states
    assert len(alarms[0].events) == events


def test_an_alarm_is_called_by_its_commit_once_that_is_known() -> None:
    (alarm,) = told((SEEN, "new"), tip(1, "slower", named=40 * "a", proved=True))
    assert alarm.id == 12 * "a"
    assert alarm.events[1].was == (SEEN[:12],)
    assert alarm.since == alarm.events[0].at
