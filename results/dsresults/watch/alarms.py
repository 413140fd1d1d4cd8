"""Alarms of a standing watch: one cause is one alarm, wherever it was seen. Pure.

What becomes of an alarm is a log that only grows: each change is a finding of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import Field

from dsharness.model import Finding, Value
from dsresults.stored_value import values_of
from dsresults.watch.watched_series import WatchedSeries, WatchedTip, moment

SHORT = 12  # letters of a hash that name an alarm
FIXED_SHARE = 0.5  # of an alarm's log-ratio that a change to the better must take back


class AlarmState(StrEnum):
    """What is known of an alarm, or was decided by a person."""

    NEW = "new"  # both ends were measured, and differ likelier than not
    BISECTING = "bisecting"  # measured again they still do: what lies between is measured
    CONFIRMED = "confirmed"  # both ends differ, and the commit is not named or not proved
    NAMED = "named"
    REPORTED = "reported"
    ACCEPTED = "accepted"
    WONT_FIX = "wont-fix"
    FIXED = "fixed"
    INVALID = "invalid"

    @property
    def open(self) -> bool:
        return self.pending or self in {
            AlarmState.CONFIRMED,
            AlarmState.NAMED,
            AlarmState.REPORTED,
        }

    @property
    def pending(self) -> bool:
        """Whether the search for it has no answer yet."""
        return self in {AlarmState.NEW, AlarmState.BISECTING}

    @property
    def decided(self) -> bool:
        """Whether only a person says so."""
        return self in {AlarmState.ACCEPTED, AlarmState.WONT_FIX, AlarmState.INVALID}


class AlarmEvent(Value):
    """Something that became of an alarm."""

    alarm: str = Field(description="its id: how its commit's hash begins, or its tip's")
    at: str
    state: AlarmState
    note: str = ""
    series: WatchedSeries | None = Field(default=None, description="where it was seen")
    commit: str = ""
    same: tuple[str, ...] = Field(default=(), description="commits with the same change")
    effect: float | None = None
    title: str = ""
    text: str = Field(default="", description="an issue for upstream")
    was: tuple[str, ...] = Field(
        default=(), description="ids that it had while it was searched for: by the tips"
    )

    @property
    def finding(self) -> Finding:
        where = f" on {self.series}" if self.series else ""
        return Finding.now(
            "alarm", self, title=f"alarm {self.alarm}{where}", answer=self.state.value
        )


class Alarm(Value):
    """One cause, wherever it was seen."""

    id: str
    state: AlarmState
    commit: str
    title: str
    text: str
    since: str
    events: tuple[AlarmEvent, ...]

    @property
    def sightings(self) -> tuple[AlarmEvent, ...]:
        """The latest event of each series that has seen it."""
        last = {str(event.series): event for event in self.events if event.series and event.effect}
        return tuple(last.values())

    @property
    def commits(self) -> frozenset[str]:
        """Every commit that carries its change."""
        return frozenset(
            name for event in self.events for name in (event.commit, *event.same) if name
        )


def alarms_of(findings: Iterable[Finding]) -> tuple[Alarm, ...]:
    """All alarms, the newest first; the latest event says the state.

    What is only searched for does not change the state of what is known already.
    """
    events = [*values_of(AlarmEvent, (finding for finding in findings if finding.kind == "alarm"))]
    events.sort(key=lambda event: event.at)
    became = {old: event.alarm for event in events for old in event.was}
    groups: dict[str, list[AlarmEvent]] = {}
    for event in events:
        groups.setdefault(became.get(event.alarm, event.alarm), []).append(event)
    alarms = (_alarm(name, group) for name, group in groups.items())
    return tuple(sorted(alarms, key=lambda alarm: alarm.since, reverse=True))


def _alarm(name: str, events: Sequence[AlarmEvent]) -> Alarm:
    def latest(field: str) -> str:
        return next((value for event in reversed(events) if (value := getattr(event, field))), "")

    return Alarm(
        id=name,
        state=_state(events),
        commit=latest("commit"),
        title=latest("title"),
        text=latest("text"),
        since=events[0].at,
        events=tuple(events),
    )


def _state(events: Sequence[AlarmEvent]) -> AlarmState:
    """The latest; one that is pending says less than one that is open or was decided."""
    states = [event.state for event in events]
    settled = [state for state in states if not state.pending]
    return settled[-1] if settled and (settled[-1].open or settled[-1].decided) else states[-1]


def followed(alarms: Sequence[Alarm], tip: str, series: WatchedSeries) -> tuple[Alarm, ...]:
    """What was seen on this series and has no answer yet, and what this tip itself is called."""
    return tuple(
        alarm
        for alarm in alarms
        if any(event.state.pending and event.series == series for event in alarm.events)
        if alarm.state.pending or alarm.id == tip[:SHORT]
    )


def searched(
    alarms: Sequence[Alarm], tip: str, series: WatchedSeries, state: AlarmState, note: str
) -> AlarmEvent | None:
    """The event of a search that has no answer yet, if it changes what is known of this tip."""
    name = tip[:SHORT]
    states = [event.state for alarm in alarms for event in alarm.events if event.alarm == name]
    if states and states[-1] is state:
        return None
    return AlarmEvent(alarm=name, at=moment(), state=state, note=note, series=series)


def unconfirmed(alarms: Sequence[Alarm], tip: WatchedTip) -> tuple[AlarmEvent, ...]:
    """The events of an answer that is no alarm: what was seen on its series came to nothing.

    Where the search was undecided, it waits for the next look.
    """
    if tip.direction == "slower":
        return ()
    ends = tip.direction in {"none", "faster"}
    state = AlarmState.INVALID if ends else AlarmState.NEW
    return tuple(
        AlarmEvent(alarm=alarm.id, at=tip.at, state=state, note=tip.summary, series=tip.series)
        for alarm in followed(alarms, tip.tip, tip.series)
        if alarm.state.pending and alarm.state is not state
    )


def sighted(
    alarms: Sequence[Alarm],
    tip: WatchedTip,
    *,
    same: Sequence[str] = (),
    title: str = "",
    text: str = "",
) -> AlarmEvent | None:
    """The event that a slower tip makes: of a known alarm if one of its commits is the cause."""
    if tip.direction != "slower":
        return None
    cause = {*([tip.named] if tip.named else []), *same}
    searching = followed(alarms, tip.tip, tip.series)
    known_alarm = next((alarm for alarm in alarms if alarm.commits & cause), None)
    name = known_alarm.id if known_alarm else (tip.named or tip.tip)[:SHORT]
    state = AlarmState.NAMED if tip.named and tip.proved else AlarmState.CONFIRMED
    states = [
        alarm.state for alarm in (known_alarm, *searching) if alarm and not alarm.state.pending
    ]
    if (
        states and states[0] is not AlarmState.FIXED
    ):  # what a person decided stays, unless it came back
        state = states[0]
    return AlarmEvent(
        alarm=name,
        was=tuple(alarm.id for alarm in searching if alarm.id != name),
        at=tip.at,
        state=state,
        note=tip.summary,
        series=tip.series,
        commit=tip.named or "",
        same=tuple(same),
        effect=tip.effect,
        title=title,
        text=text,
    )


def taken_back(alarms: Sequence[Alarm], tip: WatchedTip) -> tuple[AlarmEvent, ...]:
    """The events of a tip that became better: open alarms of its series that it takes back."""
    if tip.direction != "faster":
        return ()
    return tuple(
        AlarmEvent(
            alarm=alarm.id,
            at=tip.at,
            state=AlarmState.FIXED,
            note=f"{tip.summary}, which takes it back",
            series=tip.series,
        )
        for alarm in alarms
        if alarm.state.open
        for sighting in alarm.sightings
        if sighting.series == tip.series
        and sighting.effect
        and -tip.log_ratio >= FIXED_SHARE * math.log(sighting.effect)
    )
