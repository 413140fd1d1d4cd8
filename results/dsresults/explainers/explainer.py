"""What a product adds to a report: facts that it shows, and reasons that need to know it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dsharness.model import Facts
from dsresults.compare.comparison_table import Column, ComparisonTable
from dsresults.reasons.reason import Reason, StepPlace


@dataclass(frozen=True, kw_only=True)
class FactText:
    """A fact in words: what a reader looks for first, and the rest of it."""

    main: str
    more: str = ""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.main, self.more)))


@dataclass(frozen=True, kw_only=True)
class FactColumn:
    """A column of what servers say of themselves."""

    heading: str
    read: Callable[[Facts], FactText | None]
    # The operations whose cost its explainer accounts for; others are shown where they differ.
    costs: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        return f"the {self.heading}"

    def concerns(self, columns: Iterable[Column]) -> bool:
        """Whether one of these loads made such an operation; what costs any concerns all."""
        return not self.costs or any(each.measured(*self.costs) for each in columns)


def _nothing(_: object) -> Iterable[Reason]:
    return ()


def _never(_comparison: ComparisonTable, _column: Column, _candidate: str) -> bool:
    return False


@dataclass(frozen=True, kw_only=True)
class Explainer:
    """One kind of knowledge about a product; its functions are pure."""

    columns: tuple[FactColumn, ...]
    # Whether one load is seen to reuse the results of earlier operations on a candidate.
    reuses: Callable[[ComparisonTable, Column, str], bool] = _never
    of_loads: Callable[[ComparisonTable], Iterable[Reason]] = _nothing
    of_step: Callable[[StepPlace], Iterable[Reason]] = _nothing
    # Of a step where only the server changed, and not what it holds.
    of_server: Callable[[StepPlace], Iterable[Reason]] = _nothing
