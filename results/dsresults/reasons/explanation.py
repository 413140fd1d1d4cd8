"""Why the answer is what it is, from the figures and the known changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.measure.metrics import COST, CPU
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.reasons.caveats import changed_images, published, witnesses
from dsresults.reasons.cost_steps import places
from dsresults.reasons.libraries import library_changes
from dsresults.reasons.load_dependence import disagreement
from dsresults.reasons.password_cache import reuse
from dsresults.reasons.reason import Confidence, Reason
from dsresults.reasons.stored_schemes import known_changes, stored_change

BY_CPU_TIME = {COST.name, CPU.name}

__all__ = ["Confidence", "Reason", "explain"]


def explain(comparison: ComparisonTable) -> list[Reason]:
    """Findings, the most important ones first; no finding twice."""
    return list(dict.fromkeys(_all(comparison)))


def _all(comparison: ComparisonTable) -> Iterator[Reason]:
    if comparison.metric in BY_CPU_TIME:
        yield from _of_cost(comparison)
    yield from published(comparison)
    yield from changed_images(comparison)


def _of_cost(comparison: ComparisonTable) -> Iterator[Reason]:
    """What is known about CPU time says nothing of a rate or a latency."""
    yield from disagreement(comparison)
    yield from reuse(comparison)
    found = places(comparison)
    for place in found:
        yield from stored_change(place)
        yield from known_changes(place)
    yield from witnesses(comparison)
    for place in found:
        yield from library_changes(place)
