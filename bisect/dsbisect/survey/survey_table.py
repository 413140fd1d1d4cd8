"""What a survey found, as a table for people, for a page, and for programs. Core pure logic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dsbisect.survey.probe import SourceResult
from dsharness.products.seen_builds import Seen, SeenBuilds, seen_builds_of
from dsresults.explainers import FactColumn, columns_of

STAGES = ("source", "toolchain", "shows", "built", "starts", "answers")


@dataclass(frozen=True, kw_only=True)
class SurveyTable:
    """The columns of a table: stages, then the facts that these products' servers tell."""

    facts: tuple[FactColumn, ...]

    @property
    def head(self) -> tuple[str, ...]:
        return (*STAGES, *(column.heading for column in self.facts), "minutes", "note")

    def row(self, result: SourceResult) -> tuple[str, ...]:
        """Return the cells of a line."""
        outcome = result.outcome
        stages = ("yes" if reached else "no" for reached in outcome.reached)
        facts = (str(column.read(outcome.facts) or "") for column in self.facts)
        before = " (before)" if result.known and outcome.seconds else ""
        return (
            result.source,
            result.toolchain or "none fits",
            ", ".join(result.shows),
            *stages,
            *facts,
            f"{outcome.seconds / 60:.1f}{before}",
            note_of(result),
        )

    def rows(self, findings: Iterable[SourceResult]) -> list[tuple[str, ...]]:
        return [self.head, *map(self.row, findings)]


def table_for(products: Iterable[str]) -> SurveyTable:
    """Return the columns for sources of these products; an empty name is that of none."""
    product_names = dict.fromkeys(name for name in products if name)
    return SurveyTable(facts=columns_of(product_names))


def note_of(result: SourceResult) -> str:
    """Why it failed, whether that is its own doing, and what other toolchains made of it."""
    parts = [result.outcome.why_not, result.outcome.every_file]
    parts += [f"{attempt.toolchain}: {attempt.outcome.why_not}" for attempt in result.before]
    return "; ".join(part for part in parts if part)


def table_of(findings: Sequence[SourceResult]) -> str:
    """One line for each source, or for each of its toolchains."""
    rows = table_for(result.product for result in findings).rows(findings)
    widths = tuple(max(map(len, cells)) for cells in zip(*rows, strict=True))
    return "\n".join(aligned(row, widths) for row in rows)


def aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join(cells).rstrip()


def markdown_of(findings: Sequence[SourceResult], note: str = "") -> str:
    """The table and the summary, for a page of documentation."""
    head, *rows = table_for(result.product for result in findings).rows(findings)
    rows = [head, ("---",) * len(head), *rows]
    lines = [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join([*lines, "", *([f"{note}.", ""] if note else []), summary_of(findings), ""])


def summary_of(findings: Sequence[SourceResult]) -> str:
    """How many sources can be measured, from which to which, and how many never could."""
    counts = figures_of(findings)
    names = list(dict.fromkeys(result.source for result in findings))
    good = {result.source for result in findings if result.outcome.answers}
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
    for result in findings:
        best_result = best.get(result.source)
        if best_result is None or result.outcome.reached > best_result.outcome.reached:
            best[result.source] = result
    best_results = best.values()
    return {
        "sources": len(best),
        "built": sum(result.outcome.built for result in best_results),
        "start": sum(result.outcome.starts for result in best_results),
        "answer": sum(result.outcome.answers for result in best_results),
        "broken_in_themselves": sum(result.broken for result in best_results),
    }


def document_of(
    findings: Sequence[SourceResult], repository: str, note: str = ""
) -> dict[str, object]:
    """All of it, for programs."""
    return {
        "repository": repository,
        "note": note,
        **figures_of(findings),
        "minutes": round(sum(result.outcome.seconds for result in findings) / 60, 1),
        "results": [result.model_dump(mode="json") for result in findings],
    }


def knowledge_of(findings: Iterable[SourceResult], before: SeenBuilds) -> SeenBuilds:
    """Which toolchains work for which versions; a source that no toolchain serves teaches nothing.

    Two lines of one source are of two toolchains: together they say what works.
    """
    by_source: dict[str, list[SourceResult]] = {}
    for result in findings:
        if result.version:
            by_source.setdefault(result.source, []).append(result)
    observed = (
        Seen(version=result.version, toolchain=toolchain, works=works)
        for lines in by_source.values()
        if any(line.outcome.answers for line in lines)
        for result in lines
        for toolchain, works in _tried(result)
    )
    return seen_builds_of(observed, before)


def _tried(result: SourceResult) -> list[tuple[str, bool]]:
    before = [(other.toolchain, other.outcome.answers) for other in result.before]
    return [*before, (result.toolchain, result.outcome.answers)] if result.toolchain else before


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
