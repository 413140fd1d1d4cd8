"""What a survey found, as a table for people, for a page, and for programs. Core pure logic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsbisect.survey.probe import SourceResult
from dsharness.products.seen_builds import Seen, SeenBuilds, seen_builds_of
from dsresults.explainers import FactColumn, columns_of
from dsresults.number_text import NARROW

STAGES = ("source", "toolchain", "shows", "built", "starts", "answers")


@dataclass(frozen=True, kw_only=True)
class SurveyTable:
    """The columns of a table: stages, then the facts that these products' servers tell."""

    facts: tuple[FactColumn, ...]

    @property
    def head(self) -> tuple[str, ...]:
        return (*STAGES, *(column.heading for column in self.facts), "minutes", "note")

    def row(self, each: SourceResult) -> tuple[str, ...]:
        """Return the cells of a line."""
        found = each.outcome
        stages = ("yes" if reached else "no" for reached in found.reached)
        facts = (str(column.read(found.facts) or "").replace(NARROW, "") for column in self.facts)
        before = " (before)" if each.known and found.seconds else ""
        return (
            each.source, each.toolchain or "none fits", ", ".join(each.shows), *stages,
            *facts, f"{found.seconds / 60:.1f}{before}", note_of(each),
        )  # fmt: skip

    def rows(self, findings: Iterable[SourceResult]) -> list[tuple[str, ...]]:
        return [self.head, *map(self.row, findings)]


def table_for(products: Iterable[str]) -> SurveyTable:
    """Return the columns for sources of these products; an empty name is that of none."""
    known = dict.fromkeys(name for name in products if name)
    return SurveyTable(facts=columns_of(known))


def note_of(each: SourceResult) -> str:
    """Why it failed, whether that is its own doing, and what other toolchains made of it."""
    parts = [each.outcome.why_not, each.outcome.every_file]
    parts += [f"{other.toolchain}: {other.outcome.why_not}" for other in each.before]
    return "; ".join(part for part in parts if part)


def table_of(findings: Sequence[SourceResult]) -> str:
    """One line for each source, or for each of its toolchains."""
    rows = table_for(each.product for each in findings).rows(findings)
    widths = tuple(max(map(len, cells)) for cells in zip(*rows, strict=True))
    return "\n".join(aligned(row, widths) for row in rows)


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()


def markdown_of(findings: Sequence[SourceResult], note: str = "") -> str:
    """The table and the summary, for a page of documentation."""
    head, *rows = table_for(each.product for each in findings).rows(findings)
    rows = [head, ("---",) * len(head), *rows]
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([*lines, "", *([f"{note}.", ""] if note else []), summary_of(findings), ""])


def summary_of(findings: Sequence[SourceResult]) -> str:
    """How many sources can be measured, from which to which, and how many never could."""
    counts = figures_of(findings)
    names = list(dict.fromkeys(each.source for each in findings))
    good = {each.source for each in findings if each.outcome.answers}
    usable = [name for name in names if name in good]
    if not usable:
        first = f"none of {len(names)} sources can be measured"
    else:
        ends = usable[-1] if len(usable) == 1 else f"{usable[-1]} to {usable[0]}"
        first = f"{len(usable)} of {len(names)} sources can be measured: {ends}"
    broken = counts["broken_in_themselves"]
    return first + (f"; {broken} broken in themselves" if broken else "")


def figures_of(findings: Sequence[SourceResult]) -> dict[str, int]:
    """Counts of sources: the best line of each counts."""
    best: dict[str, SourceResult] = {}
    for each in findings:
        known = best.get(each.source)
        if known is None or each.outcome.reached > known.outcome.reached:
            best[each.source] = each
    kept = best.values()
    return {
        "sources": len(best),
        "built": sum(each.outcome.built for each in kept),
        "start": sum(each.outcome.starts for each in kept),
        "answer": sum(each.outcome.answers for each in kept),
        "broken_in_themselves": sum(each.broken for each in kept),
    }


def document_of(
    findings: Sequence[SourceResult], repository: str, note: str = ""
) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "repository": repository,
        "note": note,
        **figures_of(findings),
        "minutes": round(sum(each.outcome.seconds for each in findings) / 60, 1),
        "results": [each.model_dump(mode="json") for each in findings],
    }


def knowledge_of(findings: Iterable[SourceResult], before: SeenBuilds) -> SeenBuilds:
    """Which toolchains work for which versions; a source that no toolchain serves teaches nothing.

    Two lines of one source are of two toolchains: together they say what works.
    """
    by_source: dict[str, list[SourceResult]] = {}
    for each in findings:
        if each.version:
            by_source.setdefault(each.source, []).append(each)
    observed = (
        Seen(version=each.version, toolchain=toolchain, works=works)
        for lines in by_source.values()
        if any(line.outcome.answers for line in lines)
        for each in lines
        for toolchain, works in _tried(each)
    )
    return seen_builds_of(observed, before)


def _tried(each: SourceResult) -> list[tuple[str, bool]]:
    before = [(other.toolchain, other.outcome.answers) for other in each.before]
    return [*before, (each.toolchain, each.outcome.answers)] if each.toolchain else before


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
