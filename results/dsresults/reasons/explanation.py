"""Why the answer is what it is, from the figures and the known changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.compare.observed import ComparisonTable
from dsresults.reasons.caveats import changed_images, published
from dsresults.reasons.cost_steps import places
from dsresults.reasons.libraries import library_changes
from dsresults.reasons.load_dependence import disagreement
from dsresults.reasons.password_cache import reuse
from dsresults.reasons.rate_and_cpu import witnesses
from dsresults.reasons.reason import Confidence, Reason
from dsresults.reasons.stored_schemes import known_changes, stored_change

__all__ = ["Confidence", "Reason", "explain"]


def explain(comparison: ComparisonTable) -> list[Reason]:
    """Findings, the most important ones first; no finding twice."""
    return list(dict.fromkeys(_all(comparison)))


def _all(comparison: ComparisonTable) -> Iterator[Reason]:
    yield from disagreement(comparison)
    yield from reuse(comparison)
    found = places(comparison)
    for place in found:
        yield from stored_change(place)
        yield from known_changes(place)
    yield from witnesses(comparison)
    for place in found:
        yield from library_changes(place)
    yield from published(comparison)
    yield from changed_images(comparison)
