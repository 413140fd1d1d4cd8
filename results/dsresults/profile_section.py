"""Where the time goes, as a part of a page: functions, flame graphs, the server's own log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsresults.compare.latency_curves import FEWEST_SLOWER
from dsresults.number_text import capital, significant
from dsresults.page.page import (
    Content,
    Fold,
    Listing,
    Paragraph,
    Section,
    Table,
    badge,
    code,
    note,
)
from dsresults.profile_pair import (
    ProfilePair,
    changed_functions,
    flame_graphs,
    function_changes,
    heap_changes,
)
from dsresults.times_table import TimesRow, notes_rows, notes_text, times_cells, times_rows
from dsresults.tool_steps import ToolStep


def profile_section(pairs: Sequence[ProfilePair]) -> Section:
    """Return what was seen of both sides of each step."""
    sections = [
        Section(
            title=(code(pair.workload_id), f": {' → '.join(pair.names)}"),
            parts=[*_parts(pair)],
        )
        for pair in pairs
    ]
    return Section(title="Where the time goes", id="profiles", parts=sections)


def _parts(pair: ProfilePair) -> Iterator[Content]:
    yield from _missing("profile", pair.note)
    yield from _missing("second tool", pair.tools_note)
    if step := ToolStep.of(pair.tools):
        doubt = () if step.agree else (badge("not sure", "slow"), " ")
        yield (*doubt, f"{capital(step.text)}.")
    for caption, unit, changes in changed_functions(pair):
        yield Table(
            kind="changes",
            caption=caption,
            columns=("function", *(f"{name}, {unit}" for name in pair.names), f"change, {unit}"),
            rows=[
                (
                    code(change.function),
                    significant(change.before),
                    significant(change.after),
                    f"{'+' if change.change >= 0 else '−'}{significant(abs(change.change))}",  # noqa: RUF001
                )
                for change in changes
            ],
        )
    yield from _missing("memory that stays", pair.heap_note)
    if pair.heap and not heap_changes(pair):
        yield "No memory stays after the operations of either side."
    yield from _missing("places where threads wait", pair.waits_note)
    yield from _missing("instructions by function", pair.counts_note)
    yield from _flames(pair)
    yield from _missing("times of the server's own log", pair.times_note)
    if rows := times_rows(pair.times):
        yield times_table(pair.names, rows)
        yield from (f"{capital(notes_text(row))}." for row in notes_rows(pair.times))
        yield Fold(title="Lines of these logs", parts=[*_excerpts(pair)])


def _missing(noun: str, why: str) -> Iterator[Content]:
    if why:
        yield f"No {noun}: {why}."


def _flames(pair: ProfilePair) -> Iterator[Content]:
    """The graph of what changed comes first."""
    for number, graph in enumerate(reversed(flame_graphs(pair))):
        reading = note(
            "A frame is as wide as its CPU time; ",
            badge("orange", "slow"),
            " costs more than before, ",
            badge("green", "fast"),
            " less, grey as much. Point at a frame for its figures. What is gone is only in the "
            "table and in the other graph.",
        )
        changed = number == 0 and function_changes(pair)
        yield Fold(
            title=graph.title,
            parts=(*((reading,) if changed else ()), graph.chart),
            kind="flames",
        )


def times_table(names: Sequence[str], rows: Sequence[TimesRow]) -> Table:
    """Return what the server's own log says of both sides."""
    return Table(
        kind="changes whole",
        headed=2,
        caption="How long operations took by the server's own log, in microseconds, from runs of "
        f"their own while it was written. Only percentiles that at least {FEWEST_SLOWER} "
        "operations exceed are given.",
        columns=("operation", "time", *(f"{name} {p}" for name in names for p in ("p50", "p99"))),
        rows=[times_cells(row) for row in rows],
    )


def _excerpts(pair: ProfilePair) -> Iterator[Content]:
    for candidate, operation, lines in pair.excerpts:
        yield Paragraph(words=f"{candidate}: {operation}", kind="quiet")
        yield Listing(lines=lines)
