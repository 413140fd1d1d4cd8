"""What a standing watch has seen: tips of branches, alarms, and what became of them. Pure.

All of it is a log that only grows: each tip and each change of an alarm is a finding of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from dsharness.model import Finding, Value

FIXED_SHARE = 0.5  # of an alarm's log-ratio that a change to the better must take back


class WatchedSeries(Value):
    """One line of measurements: a branch under a workload."""

    watch: str
    branch: str
    workload: str
    metric: str

    def __str__(self) -> str:
        return f"{self.branch} with {self.workload}"


class WatchedTip(Value):
    """A branch's newest commit, measured next to the series' reference."""

    series: WatchedSeries
    at: str = Field(description="UTC, ISO 8601: when the answer stood")
    reference: str = Field(description="the commit that it was compared with")
    tip: str
    subject: str = ""
    committed: str = Field(default="", description="the tip's date")
    direction: Literal["slower", "faster", "none", "unknown", "impossible"]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    confidence: float | None = None
    smallest_pct: float | None = Field(default=None, description="that it could have seen")
    named: str | None = Field(default=None, description="the commit behind a difference")
    proved: bool | None = None
    summary: str
    campaigns: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def differs(self) -> bool:
        return self.direction in {"slower", "faster"}

    @property
    def log_ratio(self) -> float:
        """Above 0 where the tip is worse; 0 where no difference was found."""
        if not self.differs or not self.effect:
            return 0.0
        return math.log(self.effect) * (1 if self.direction == "slower" else -1)

    @property
    def finding(self) -> Finding:
        return Finding.now(
            "watched", self, title=f"{self.series}: {self.tip[:12]}", answer=self.summary
        )


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


def moment() -> str:
    """Now, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def tips_of(findings: Iterable[Finding], watch: str) -> tuple[WatchedTip, ...]:
    """All tips of a watch in the order of their answers."""
    found = (WatchedTip.model_validate(each.value) for each in findings if each.kind == "watched")
    return tuple(
        sorted((each for each in found if each.series.watch == watch), key=lambda each: each.at)
    )


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


def next_reference(tips: Sequence[WatchedTip], first: str) -> str:
    """What the next tip of a series is compared with: pinned, until a difference was found.

    So that what creeps in by steps too small to be seen is seen in the end. After a named commit
    it is that commit; after one that was not named, the tip that differed.
    """
    found = [tip for tip in tips if tip.differs]
    return (found[-1].named or found[-1].tip) if found else first


def seen_already(tips: Sequence[WatchedTip], tip: str) -> bool:
    """Whether the answer about this tip stands; of an unknown one more is worth a try."""
    return bool(tips) and tips[-1].tip == tip and tips[-1].direction != "unknown"


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


class SeriesPoint(Value):
    """Where a tip stands, as a multiple of the series' first reference."""

    at: str
    tip: str
    ratio: float
    low: float
    high: float


def points_of(tips: Sequence[WatchedTip]) -> tuple[SeriesPoint, ...]:
    """Each tip's level: the differences found so far, multiplied; what says nothing has none."""
    level, points = 0.0, []
    for tip in tips:
        if tip.direction in {"unknown", "impossible"}:
            continue
        sign = 1 if tip.direction == "slower" else -1
        ends = sorted(sign * math.log(each) for each in tip.interval or () if each > 0)
        near = math.log1p((tip.smallest_pct or 0.0) / 100)
        low, high = (ends[0], ends[-1]) if tip.differs and ends else (-near, near)
        points.append(
            SeriesPoint(
                at=tip.at,
                tip=tip.tip,
                ratio=math.exp(level + tip.log_ratio),
                low=math.exp(level + low),
                high=math.exp(level + high),
            )
        )
        level += tip.log_ratio
    return tuple(points)
