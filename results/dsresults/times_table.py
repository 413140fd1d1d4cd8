"""What a server's own log says of how long operations took, on both sides of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsharness.errors import InconclusiveError
from dsharness.model import KindTimes, Latencies, ServerTimes, Value
from dsresults.compare.latency_curves import FEWEST_SLOWER, Ranked
from dsresults.number_text import significant, whole

PARTS = {
    "waited": "waiting for a thread",
    "worked": "in a thread",
    "whole": "from request to answer",
    "seen": "as the load saw it",
}


class TimesRow(Value):
    """One part of the time of one kind of operation; None where it is not known."""

    operation: str
    part: str
    before_us: tuple[float | None, float | None]  # p50, p99
    after_us: tuple[float | None, float | None]


class NotesRow(Value):
    """How many answers of one kind had a remark of the server."""

    operation: str
    note: str
    before: int
    after: int


def times_rows(sides: Sequence[ServerTimes]) -> tuple[TimesRow, ...]:
    """The rows of all kinds of operations that either side has; none without two sides."""
    if len(sides) < 2:
        return ()
    before, after = sides
    rows = (
        TimesRow(
            operation=kind,
            part=words,
            before_us=_shown(before.kinds.get(kind), part),
            after_us=_shown(after.kinds.get(kind), part),
        )
        for kind in sorted(before.kinds.keys() | after.kinds.keys())
        for part, words in PARTS.items()
    )
    return tuple(row for row in rows if any((*row.before_us, *row.after_us)))


def notes_rows(sides: Sequence[ServerTimes]) -> tuple[NotesRow, ...]:
    """The remarks of both sides: a search that lost its index is one of them."""
    return tuple(_notes(*sides)) if len(sides) == 2 else ()


def _notes(before: ServerTimes, after: ServerTimes) -> Iterator[NotesRow]:
    for kind in sorted(before.kinds.keys() | after.kinds.keys()):
        first, second = (
            side.kinds[kind].notes if kind in side.kinds else {} for side in (before, after)
        )
        for note in sorted(first.keys() | second.keys()):
            yield NotesRow(
                operation=kind, note=note, before=first.get(note, 0), after=second.get(note, 0)
            )


def _shown(times: KindTimes | None, part: str) -> tuple[float | None, float | None]:
    latencies: Latencies | None = getattr(times, part) if times else None
    try:
        counts = latencies.counts if latencies else {}
    except InconclusiveError:  # of an import, which may hold anything
        counts = {}
    if not counts:
        return None, None
    ranked = Ranked(counts)
    p50, p99 = (
        ranked.at(percent) if ranked.slower(percent) >= FEWEST_SLOWER else None
        for percent in (50.0, 99.0)
    )
    return p50, p99


def times_cells(row: TimesRow) -> tuple[str, ...]:
    """A row as its table has it."""
    times = (*row.before_us, *row.after_us)
    return (row.operation, row.part, *("-" if us is None else significant(us) for us in times))


def notes_text(row: NotesRow) -> str:
    """A remark in a sentence: ``search: notes=U on 0, then 4 210 answers``."""
    return (
        f"{row.operation}: notes={row.note} on {whole(row.before)}, then {whole(row.after)} answers"
    )
