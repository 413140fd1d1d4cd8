"""Alarms of a standing watch: one cause is one alarm, wherever it was seen. Pure.

What becomes of an alarm is a log that only grows: each change is a finding of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import Field

from dsharness.model import Finding, Value
from dsresults.watch.watched_series import WatchedSeries, WatchedTip

FIXED_SHARE = 0.5  # of an alarm's log-ratio that a change to the better must take back


class AlarmState(StrEnum):
    """What is known of an alarm, or was decided by a person."""

    CONFIRMED = "confirmed"  # both ends differ, and the commit is not named or not proved
    NAMED = "named"
    REPORTED = "reported"
    ACCEPTED = "accepted"
    WONT_FIX = "wont-fix"
    FIXED = "fixed"
    INVALID = "invalid"

    @property
    def open(self) -> bool:
        return self in {AlarmState.CONFIRMED, AlarmState.NAMED, AlarmState.REPORTED}


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
        last = {str(each.series): each for each in self.events if each.series and each.effect}
        return tuple(last.values())

    @property
    def commits(self) -> frozenset[str]:
        """Every commit that carries its change."""
        return frozenset(name for each in self.events for name in (each.commit, *each.same) if name)


def alarms_of(findings: Iterable[Finding]) -> tuple[Alarm, ...]:
    """All alarms, the newest first; the latest event says the state."""
    events = [AlarmEvent.model_validate(each.value) for each in findings if each.kind == "alarm"]
    events.sort(key=lambda each: each.at)
    groups: dict[str, list[AlarmEvent]] = {}
    for event in events:
        groups.setdefault(event.alarm, []).append(event)
    alarms = (_alarm(name, group) for name, group in groups.items())
    return tuple(sorted(alarms, key=lambda alarm: alarm.since, reverse=True))


def _alarm(name: str, events: Sequence[AlarmEvent]) -> Alarm:
    def latest(field: str) -> str:
        return next((value for each in reversed(events) if (value := getattr(each, field))), "")

    return Alarm(
        id=name,
        state=events[-1].state,
        commit=latest("commit"),
        title=latest("title"),
        text=latest("text"),
        since=events[0].at,
        events=tuple(events),
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
    known = next((alarm for alarm in alarms if alarm.commits & cause), None)
    state = AlarmState.NAMED if tip.named and tip.proved else AlarmState.CONFIRMED
    if known is not None:  # what a person decided stays decided, unless it came back
        state = known.state if known.state is not AlarmState.FIXED else state
    return AlarmEvent(
        alarm=known.id if known else (tip.named or tip.tip)[:12],
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
        for seen in alarm.sightings
        if seen.series == tip.series
        and seen.effect
        and -tip.log_ratio >= FIXED_SHARE * math.log(seen.effect)
    )
