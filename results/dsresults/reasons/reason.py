"""A finding: a sentence or two, what it is based on, and how sure it is.

Most findings are about a place where the cost changes between two neighbours: the boundaries, and
further steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from dsharness.model import Boundary, Facts, Value
from dsresults.compare.comparison_table import Column, ComparisonTable, Estimate, Observed


class Confidence(StrEnum):
    """How sure a finding is."""

    MEASURED = "measured"  # this run's own figures show it
    LIKELY = "likely"  # this run's figures fit a known change
    POSSIBLE = "possible"  # a possible cause, to be tested


class Reason(Value):
    """One reason, or one doubt."""

    topic: str
    text: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


class CostChange(Value):
    """Two neighbours whose costs differ under one workload; the ratio is after over before."""

    column: Column
    before: Observed
    after: Observed
    ratio: Estimate
    boundary: bool


class StepPlace(Value):
    """Two neighbours, and every workload under which their costs differ."""

    comparison: ComparisonTable
    before: str
    after: str
    changes: tuple[CostChange, ...]

    @property
    def boundary_of(self) -> tuple[str, ...]:
        return tuple(change.column.workload_id for change in self.changes if change.boundary)

    @property
    def name(self) -> str:
        loads = ", ".join(self.boundary_of)
        return f"{self.before} to {self.after}" + (f" (boundary of {loads})" if loads else "")

    @property
    def facts(self) -> tuple[Facts, Facts]:
        """What both say of themselves."""
        for change in self.changes:
            if change.before.facts and change.after.facts:
                return change.before.facts, change.after.facts
        return {}, {}

    def version(self, candidate_id: str) -> str:
        """The product's version."""
        return self.comparison.candidate(candidate_id).product_version

    @property
    def product(self) -> str | None:
        """The one product that both are; None where that is not known, or there are two."""
        product_names = {
            self.comparison.candidate(candidate).product for candidate in (self.before, self.after)
        }
        return product_names.pop() if len(product_names) == 1 else None

    @property
    def product_title(self) -> str:
        return self.comparison.candidate(self.after).product_title


def places(comparison: ComparisonTable) -> tuple[StepPlace, ...]:
    """Every place where the cost changes, boundaries first."""
    groups: dict[tuple[str, str], list[CostChange]] = {}
    for change in (
        cost_change for column in comparison.columns for cost_change in _changes(column)
    ):
        groups.setdefault((change.before.candidate, change.after.candidate), []).append(change)
    step_places = [
        StepPlace(
            comparison=comparison,
            before=before,
            after=after,
            changes=tuple(sorted(group, key=lambda change: not change.boundary)),
        )
        for (before, after), group in groups.items()
    ]
    order = comparison.line.index
    return tuple(
        sorted(step_places, key=lambda place: (not place.boundary_of, order(place.before)))
    )


def _changes(column: Column) -> Iterator[CostChange]:
    answer = column.boundary
    if answer is None:
        return
    boundary = (answer.before, answer.after) if answer.found else None
    for (before_id, after_id), ratio in _ratios(answer).items():
        before, after = column.of(before_id), column.of(after_id)
        if before and after:
            yield CostChange(
                column=column,
                before=before,
                after=after,
                ratio=ratio,
                boundary=(before_id, after_id) == boundary,
            )


def _ratios(answer: Boundary) -> dict[tuple[str, str], Estimate]:
    """The boundary's own effect was confirmed last, so it is used instead of its step."""
    ratios = {
        (step.before, step.after): Estimate(value=step.ratio, interval=step.interval)
        for step in answer.steps
    }
    if answer.found and answer.before and answer.after and answer.effect:
        effect = Estimate(value=answer.effect, interval=answer.effect_interval)
        faster = answer.direction == "faster"
        ratios[answer.before, answer.after] = effect.inverse() if faster else effect
    return ratios
