"""Where the cost changes between two neighbours: the boundaries, and the steps beside them."""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.model import Boundary, Value
from dsresults.observing import Column, Comparison, Estimate, Observed


class Change(Value):
    """Two neighbours whose costs differ under one workload."""

    comparison: Comparison
    column: Column
    before: Observed
    after: Observed
    ratio: Estimate
    boundary: bool

    @property
    def place(self) -> str:
        word = "Boundary" if self.boundary else "Step"
        return f"{word} {self.before.candidate} to {self.after.candidate}"

    def version(self, observed: Observed) -> str:
        """The 389-ds that was measured; the matrix's word for it where no manifest is known."""
        candidate = self.comparison.candidate(observed.candidate)
        return candidate.versions.get("389-ds") or candidate.dirsrv or ""


def changes(comparison: Comparison) -> tuple[Change, ...]:
    """Every difference between neighbours, boundaries first."""
    found = [change for column in comparison.columns for change in _of(comparison, column)]
    return tuple(sorted(found, key=lambda change: not change.boundary))


def _of(comparison: Comparison, column: Column) -> Iterator[Change]:
    answer = column.boundary
    if answer is None:
        return
    boundary = (answer.before, answer.after) if answer.found else None
    for (before_id, after_id), ratio in _ratios(answer).items():
        before, after = column.of(before_id), column.of(after_id)
        if before and after:
            yield Change(
                comparison=comparison,
                column=column,
                before=before,
                after=after,
                ratio=ratio,
                boundary=(before_id, after_id) == boundary,
            )


def _ratios(answer: Boundary) -> dict[tuple[str, str], Estimate]:
    """Cost after over cost before; the boundary's own effect is what was confirmed last."""
    found = {
        (step.before, step.after): Estimate(value=step.ratio, interval=step.interval)
        for step in answer.steps
    }
    if answer.found and answer.before and answer.after and answer.effect:
        effect = Estimate(value=answer.effect, interval=answer.effect_interval)
        faster = answer.direction == "faster"
        found[answer.before, answer.after] = effect.inverse() if faster else effect
    return found
