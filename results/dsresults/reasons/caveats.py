"""Why the figures should be read with care."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.model import Outcome
from dsresults.compare.observed import ComparisonTable
from dsresults.reasons.reason import Confidence, Reason


def published(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates whose published verdict is the opposite of the measured one."""
    for candidate in comparison.candidates:
        if candidate.published is None:
            continue
        said = Outcome(candidate.published.verdict)
        against = [
            column.workload_id
            for column in comparison.columns
            if (one := column.of(candidate.id)) and one.outcome not in {said, Outcome.INCONCLUSIVE}
        ]
        if against:
            yield Reason(
                topic="Not as published",
                text=f"{candidate.id} is published as {said.value} and was measured as the "
                f"opposite with {', '.join(against)}.",
                confidence=Confidence.MEASURED,
                evidence=tuple(
                    filter(None, (candidate.published_source, candidate.published.note))
                ),
            )


def changed_images(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates that were measured with more than one image."""
    for candidate in comparison.candidates:
        if len(candidate.images) > 1:
            yield Reason(
                topic="More than one image",
                text=f"{candidate.id} was measured with {len(candidate.images)} different images; "
                "its figures mix them.",
                confidence=Confidence.MEASURED,
                evidence=tuple(f"image {key}" for key in candidate.images),
            )
