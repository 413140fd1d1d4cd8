"""CPU time and rate are two measures; only the rate shows locks and queues."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.compare.observed import Column, ComparisonTable, Observed
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
