"""Why the answer is what it is, out of the figures and the known changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.observing import Comparison
from dsresults.reasons.finding import Confidence, Finding
from dsresults.reasons.libraries import library_changes
from dsresults.reasons.records import changed_images, published
from dsresults.reasons.reuse import reuse
from dsresults.reasons.steps import places
from dsresults.reasons.stored import known_changes, stored_change
from dsresults.reasons.witnesses import witnesses
from dsresults.reasons.workloads import disagreement

__all__ = ["Confidence", "Finding", "explain"]


def explain(comparison: Comparison) -> list[Finding]:
    """Findings, the ones that matter most first; the same thing is said once."""
    return list(dict.fromkeys(_all(comparison)))


def _all(comparison: Comparison) -> Iterator[Finding]:
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
