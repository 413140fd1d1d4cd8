"""From the events of an access log to a workload: shares, connections, rate."""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from dsharness.errors import UsageError
from dsharness.model import LdaploadWorkload, LdapRequest
from dsharness.recorded.access_log import LogEvent, UnreadLine
from dsharness.recorded.request_shape import CannotAskError, new_entry, request_shape

ASKING = frozenset({"BIND", "SRCH", "MOD", "ADD", "DEL", "MODRDN", "CMP", "EXT"})
PASSING = frozenset({"ADD", "DEL", "MODRDN"})  # an entry comes, goes, or is renamed
ENDS = frozenset({"UNBIND", "closed", "Disconnect", "connection"})
MOST_CONNECTIONS = 64
USERS, GROUPS, MEMBERS = 1000, 10, 1000
_ERROR, _ENTRIES = re.compile(r" err=(-?\d+)"), re.compile(r" nentries=(\d+)")


@dataclass(frozen=True, kw_only=True)
class RecordedLoad:
    """What a log holds, without a name of it."""

    workload: LdaploadWorkload
    left_out: dict[str, int]  # why: how many operations
    operations: int
    unread: int
    per_second: float  # the median of the seconds in which there was one


def recorded_load(events: Iterable[LogEvent | UnreadLine]) -> RecordedLoad:
    """A load like the recorded one; UsageError if the log has no operation that it can make."""
    waiting: dict[tuple[str, int | None], LogEvent] = {}
    shapes: Counter[LdapRequest] = Counter()
    left_out: Counter[str] = Counter()
    passing: Counter[str] = Counter()
    seconds: Counter[int] = Counter()
    most = unread = 0
    for event in events:
        if isinstance(event, UnreadLine):
            unread += 1
            continue
        key = (event.connection, event.operation)
        if event.word in ASKING:
            waiting[key] = event
            most = max(most, len(waiting))
        elif event.word in ENDS:  # what was not answered by now never is
            waiting = {at: each for at, each in waiting.items() if at[0] != event.connection}
        elif event.word == "RESULT" and (asked := waiting.pop(key, None)):
            seconds[int(asked.at_s)] += 1
            error, entries = (_number(each, event.details) for each in (_ERROR, _ENTRIES))
            try:
                shape = request_shape(asked, error, entries)
            except CannotAskError as why:
                left_out[str(why)] += 1
            else:
                shapes[shape] += 1
                if asked.word in PASSING:
                    passing[asked.word] += 1
    _count_once(passing, shapes)
    requests, rare = _shared(shapes)
    if rare:
        left_out["requests that are rarer than one in 200"] = rare
    return RecordedLoad(
        workload=_workload(requests, most),
        left_out=dict(left_out),
        operations=seconds.total(),
        unread=unread,
        per_second=statistics.median(seconds.values()),
    )


def _count_once(passing: Counter[str], shapes: Counter[LdapRequest]) -> None:
    """Each operation of the load adds an entry and deletes it: a pair of the log is one of them."""
    pair = new_entry(renamed=False)
    most = max(passing["ADD"], passing["DEL"]) - passing["MODRDN"]
    if most > 0:
        shapes[pair] = most
    else:
        del shapes[pair]  # which a Counter need not have


def _number(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.search(text)
    return int(found[1]) if found else 0


def _shared(shapes: Counter[LdapRequest]) -> tuple[list[LdapRequest], int]:
    """Shares of a hundred, and how many operations are too rare for one."""
    total = shapes.total()
    if not total:
        raise UsageError(
            "the log has no operation that the load could make",
            hint="record one with searches, binds or changes (`nsslapd-accesslog-level: 256`)",
        )
    kept, rare = list[LdapRequest](), 0
    for shape, count in shapes.most_common():
        share = round(100 * count / total)
        if share or not kept:
            kept.append(shape.model_copy(update={"share": max(1, share)}))
        else:
            rare += count
    return kept, rare


def _workload(requests: list[LdapRequest], most: int) -> LdaploadWorkload:
    groups = any("(member=" in each.filter for each in requests)
    return LdaploadWorkload(
        id="recorded",
        title="like a recorded access log",
        threads=min(MOST_CONNECTIONS, max(1, most)),
        users=USERS,
        distinct_users=USERS,
        groups=GROUPS if groups else 0,
        members=MEMBERS if groups else 0,
        requests=tuple(requests),
    )


def left_out_lines(load: RecordedLoad) -> list[str]:
    """Which operations the workload does not have, and how many they are."""
    return [
        f"{100 * count / load.operations:.1f} % of the operations are left out: {why}"
        for why, count in sorted(load.left_out.items(), key=lambda item: -item[1])
    ]


def workload_text(load: RecordedLoad) -> str:
    """The file that `--workload` takes."""
    known = load.workload.model_dump(mode="json", exclude_defaults=True, exclude={"requests"})
    known |= {"tool": "ldapload", "users": USERS, "distinct_users": USERS}
    known |= {"threads": load.workload.threads}
    lines = [
        f"# Made from {load.operations} recorded operations; no name or value of them is here.",
        "# Names that are looked up became `uid`, `cn` or `sn`; memberships `member`; other",
        "# attributes that were read `description`. Entries that were added are deleted again.",
        *(f"# {line}." for line in left_out_lines(load)),
        "workloads:",
        f"  - id: {known.pop('id')}",
        *(f"    {name}: {json.dumps(value)}" for name, value in known.items()),
        f"    # scheduled: {load.per_second:g}  # as many a second as recorded (the median)",
        "    requests:",
    ]
    for request in load.workload.requests:
        said = request.model_dump(mode="json", exclude_defaults=True)
        said |= {"share": request.share, "kind": request.kind.value}
        lines.append(f"      - {json.dumps(said)}")
    return "\n".join(lines) + "\n"
