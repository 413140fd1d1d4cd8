"""Where the answer depends on the load."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from dsharness.measure.metrics import find_metric
from dsharness.model import NO_DIFFERENCE
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.number_text import times
from dsresults.reasons.password_cache import avoids_hashing
from dsresults.reasons.reason import Confidence, Reason

CLEARLY = 1.25


def disagreement(comparison: ComparisonTable) -> Iterator[Reason]:
    """A verdict belongs to its workload: two workloads have different answers."""
    answered = [column for column in comparison.columns if _answer(column)]
    if len({_answer(column) for column in answered}) < 2:
        return
    places = "; ".join(f"{column.workload_id}: {_answer(column)}" for column in answered)
    text = f"The answer depends on the load ({places}). Each verdict belongs to its workload."
    cheap = [
        f"{candidate} with {column.workload_id}"
        for column in answered
        for candidate in comparison.line
        if avoids_hashing(comparison, column, candidate)
    ]
    if cheap:
        text += f" They differ where earlier results are reused: {', '.join(cheap)}."
    yield Reason(
        topic="The workloads disagree",
        text=text,
        confidence=Confidence.MEASURED,
        evidence=tuple(_opposites(comparison, answered)),
    )


def _answer(column: Column) -> str:
    found = column.boundary
    if found is None or found.direction == "unknown":
        return ""
    if not found.found:
        return NO_DIFFERENCE
    word = find_metric(found.metric).words.said(found.direction)
    return f"{word} between {found.before} and {found.after}"


def _opposites(comparison: ComparisonTable, columns: list[Column]) -> Iterator[str]:
    """Neighbours that one load finds slower and another one faster."""
    for before, after in pairwise(comparison.line):
        ratios = [(column.workload_id, _ratio(column, before, after)) for column in columns]
        known = [(name, ratio) for name, ratio in ratios if ratio is not None]
        moved = any(not 1 / CLEARLY < ratio < CLEARLY for _, ratio in known)
        if len(known) > 1 and moved:
            each = ", ".join(f"{name} costs {_spell(ratio)}" for name, ratio in known)
            yield f"from {before} to {after}: {each}"


def _ratio(column: Column, before: str, after: str) -> float | None:
    one, other = column.of(before), column.of(after)
    if one is None or other is None or one.cost_ratio is None or other.cost_ratio is None:
        return None
    return other.cost_ratio.value / one.cost_ratio.value


def _spell(ratio: float) -> str:
    if 1 / CLEARLY < ratio < CLEARLY:
        return "about the same"
    return f"{times(ratio)} as much" if ratio > 1 else f"{times(1 / ratio)} less"
