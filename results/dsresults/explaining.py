"""Why the answer is what it is, out of the figures and the known changes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.observing import Comparison
from dsresults.reasons.finding import Confidence, Finding
from dsresults.reasons.libraries import library_changes
from dsresults.reasons.records import changed_images, published
from dsresults.reasons.reuse import reuse
from dsresults.reasons.steps import changes
from dsresults.reasons.stored import known_changes, stored_change
from dsresults.reasons.witnesses import witnesses
from dsresults.reasons.workloads import disagreement

__all__ = ["Confidence", "Finding", "explain"]


def explain(comparison: Comparison) -> list[Finding]:
    """Findings, the ones that matter most first; the same thing is said once."""
    return list(dict.fromkeys(_all(comparison)))


def _all(comparison: Comparison) -> Iterator[Finding]:
    yield from disagreement(comparison)
    for change in changes(comparison):
        yield from stored_change(change)
        yield from known_changes(change)
    yield from reuse(comparison)
    yield from witnesses(comparison)
    for change in changes(comparison):
        yield from library_changes(change)
    yield from published(comparison)
    yield from changed_images(comparison)
