"""Reasons not to take the figures at face value."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.model import Outcome
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.number_text import percent, significant, times
from dsresults.reasons.reason import Confidence, Reason

TOO_FAR_APART = 1.5


def witnesses(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates whose rate fell by another factor than their CPU time rose."""
    for column in comparison.columns:
        reference = column.of(column.reference) if column.reference else None
        if reference is None:
            continue
        for observed in column.observed:
            if observed.cost_ratio and observed.slowness_ratio:
                yield from _compare(column, observed, reference)


def _compare(column: Column, observed: Observed, reference: Observed) -> Iterator[Reason]:
    cost, slowness = observed.cost_ratio, observed.slowness_ratio
    if cost is None or slowness is None or not cost.interval or not slowness.interval:
        return
    apart = slowness.value / cost.value
    overlap = cost.interval[0] <= slowness.interval[1] and slowness.interval[0] <= cost.interval[1]
    if overlap or 1 / TOO_FAR_APART < apart < TOO_FAR_APART:
        return
    begin = (
        f"With {column.workload_id}, {observed.candidate} takes {times(cost.value)} the CPU time "
        f"of {reference.candidate}, and {times(slowness.value)} as long per operation. "
    )
    idle = observed if apart > 1 else reference
    why = (
        f"{idle.candidate} waits instead of computing: locks or queues, in the server or in the "
        "load, are suspected there."
    )
    yield Reason(
        topic="CPU time and rate disagree",
        text=begin + why,
        confidence=Confidence.POSSIBLE,
        evidence=tuple(_busy(column, one) for one in (reference, observed)),
    )


def _busy(column: Column, observed: Observed) -> str:
    text = f"{observed.candidate}: server busy on {significant(observed.busy_cpus or 0)} CPUs"
    if column.server_cpus:
        text += f" of {column.server_cpus}"
    if observed.client_cpu_us_per_op and observed.server_cpu_us_per_op:
        share = 100 * observed.client_cpu_us_per_op / observed.server_cpu_us_per_op
        text += f", the load took {percent(share)} of the server's CPU time"
    return text


def published(comparison: ComparisonTable) -> Iterator[Reason]:
    """Candidates whose published verdict is the opposite of the measured one."""
    for candidate in comparison.candidates:
        if candidate.published is None:
            continue
        verdict = Outcome(candidate.published.verdict)
        against = [
            column.workload_id
            for column in comparison.columns
            if (one := column.of(candidate.id))
            and one.outcome not in {verdict, Outcome.INCONCLUSIVE}
        ]
        if against:
            yield Reason(
                topic="Not as published",
                text=f"{candidate.id} is published as {verdict.value} and was measured as the "
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
