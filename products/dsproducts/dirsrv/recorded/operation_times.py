"""From the events of an access log to how long the server itself says that operations took.

389-ds writes three times with each answer: how long the operation waited for a thread, how long a
thread worked on it, and both together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dsharness.model import KindTimes, Latencies, ServerTimes
from dsharness.plain_text import plain
from dsproducts.dirsrv.recorded.access_log import LogEvent, Unanswered, UnreadLine

KINDS = {
    "SRCH": "search",
    "BIND": "bind",
    "MOD": "modify",
    "ADD": "add",
    "DEL": "delete",
    "MODRDN": "rename",
    "CMP": "compare",
    "EXT": "extended",
}
_TIME = re.compile(
    r" (?P<name>wtime|optime|etime)=(?P<seconds>[0-9]{1,9}(?:\.[0-9]{0,12})?)(?![0-9.])"
)
_NOTES = re.compile(r" notes=(?P<notes>[A-Z]+(?:,[A-Z]+)*)")
_SETTING = ' dn="cn=config"'  # what the lab itself changes on either side of the run
MOST_LETTERS = 400  # of a line that is shown
MOST_NOTES = 20  # kinds; a server has fewer


@dataclass(frozen=True, kw_only=True)
class _Answered:
    """One operation."""

    request: LogEvent
    answer: LogEvent
    times_us: dict[str, float]

    @property
    def lines(self) -> tuple[str, ...]:
        """It, as the text form of the log has it, without its date."""
        return tuple(
            plain(f"conn={event.connection} op={event.operation} {event.word}{event.details}")[
                :MOST_LETTERS
            ]
            for event in (self.request, self.answer)
        )


def server_times(
    events: Iterable[LogEvent | UnreadLine], *, candidate_id: str, workload_id: str
) -> ServerTimes:
    """Return its times by kind of operation; no kind where the log holds none."""
    answered = tuple(_answered(events))
    own = {operation.request.connection for operation in answered if _is_setting(operation.request)}
    by_kind: dict[str, list[_Answered]] = {}
    for operation in answered:
        if operation.request.connection not in own:
            by_kind.setdefault(KINDS[operation.request.word], []).append(operation)
    return ServerTimes(
        candidate_id=candidate_id,
        workload_id=workload_id,
        kinds={kind: _times(by_kind[kind]) for kind in sorted(by_kind)},
    )


def _is_setting(request: LogEvent) -> bool:
    return request.word == "MOD" and request.details.startswith(_SETTING)


def _answered(events: Iterable[LogEvent | UnreadLine]) -> Iterator[_Answered]:
    """Yield the operations whose request and answer are both in the log, with their times."""
    waiting = Unanswered()
    for event in events:
        if isinstance(event, UnreadLine):
            continue
        if event.word in KINDS:
            waiting.asks(event)
        elif event.word == "RESULT" and (request := waiting.answer(event)):
            times_us = {
                time["name"]: 1e6 * float(time["seconds"]) for time in _TIME.finditer(event.details)
            }
            if "etime" in times_us:
                yield _Answered(request=request, answer=event, times_us=times_us)


def _times(operations: list[_Answered]) -> KindTimes:
    ordered = sorted(operations, key=lambda operation: operation.times_us["etime"])
    notes = Counter(
        note
        for operation in operations
        if (match := _NOTES.search(operation.answer.details))
        for note in match["notes"].split(",")
    )
    waited, worked, whole_us = (
        Counter(
            round(operation.times_us[name], 1)
            for operation in operations
            if name in operation.times_us
        )
        for name in ("wtime", "optime", "etime")
    )
    return KindTimes(
        whole=Latencies.of(whole_us),
        waited=Latencies.of(waited) if waited else None,  # a server may not write it
        worked=Latencies.of(worked) if worked else None,
        notes=dict(sorted(notes.most_common(MOST_NOTES))),
        middle=ordered[len(ordered) // 2].lines,
        slowest=ordered[-1].lines,
    )
