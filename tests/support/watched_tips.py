"""Tips and alarms of a watch, as it would have stored them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dsharness.model import Finding, Machine
from dsresults.watch.alarms import AlarmEvent, alarms_of, sighted
from dsresults.watch.watch_state import WatchState, watch_state
from dsresults.watch.watched_series import (
    PackedTurns,
    WatchedSeries,
    WatchedTip,
    WatchedTurn,
    machine_shares,
)

MAIN = WatchedSeries(watch="w", branch="main", workload="bind-one", metric="cost")
STABLE = MAIN.model_copy(update={"branch": "stable"})
BEGIN = datetime(2026, 11, 27, 6, tzinfo=UTC)
LAB = Machine(id="lab-1", facts={"cpu_model": "A CPU", "cpu_count": 2, "kernel": "6.12"})
FORGE = "https://github.com/389ds/389-ds-base/commit/"
DIFFERENT = {"slower", "faster"}


def hash_of(number: int) -> str:
    """Hashes whose first letters differ."""
    return f"{number:040x}"[::-1]


def tip(number: int, direction: str = "none", **changes: object) -> WatchedTip:
    facts = {
        "series": MAIN,
        "at": (BEGIN + timedelta(hours=number)).isoformat(timespec="milliseconds"),
        "reference": 40 * "0",
        "tip": hash_of(number),
        "direction": direction,
        "effect": 1.5 if direction in DIFFERENT else None,
        "interval": (1.4, 1.6) if direction in DIFFERENT else None,
        "smallest_pct": 2.0,
        "summary": direction,
    }
    return WatchedTip.model_validate(facts | changes)


def measured(number: int, direction: str = "none", **changes: object) -> WatchedTip:
    """A tip with the runs of two turns, of a repository on a known forge."""
    sides = (12 * "0", hash_of(number)[:12])
    turns = [
        WatchedTurn(0, turn, LAB.id, 6.0, ((sides[0], 10.0 + turn), (sides[1], 12.0 - turn)))
        for turn in range(2)
    ]
    facts = {
        "campaigns": (f"campaign-{number}",),
        "commit_page": FORGE,
        "seconds": 90.0,
        "turns": PackedTurns.of(turns),
        "machines": machine_shares(turns, [LAB]),
        "subject": f"Issue {number}: <b>a change</b>",
    }
    return tip(number, direction, **(facts | changes))


def events_as_stored(*events: AlarmEvent | None) -> list[Finding]:
    return [each.finding for each in events if each]


def watch_with_an_alarm() -> WatchState:
    """Quiet, slower by a named commit, quiet again; another series that says nothing yet."""
    slow = measured(2, "slower", named=40 * "a", proved=True, summary="<b>slower</b>")
    tips = [measured(1), slow, measured(3), tip(4, "impossible"), measured(5, series=STABLE)]
    event = sighted([], slow, title="bind costs 1.5 times more CPU", text="a `<script>`")
    return watch_state("w", tips, alarms_of(events_as_stored(event)))
