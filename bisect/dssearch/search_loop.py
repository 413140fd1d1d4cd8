"""A campaign without a store: plan a turn, take it, show it all, plan again. Core pure logic.

Rehearsing and replaying drive it; they differ in where a turn's samples come from. ``Rounds`` are
turns without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from dsharness.model import Boundary, Sample, Turn, TurnState
from dssearch.planner import advance
from dssearch.question import (
    Answer,
    Enough,
    History,
    Measure,
    Pending,
    Question,
    Search,
    Wanted,
)


@dataclass(frozen=True, kw_only=True)
class TurnEnd:
    """What came of one step."""

    samples: tuple[Sample, ...] = ()
    unmeasurable: Mapping[str, str] = field(default_factory=dict)  # candidate -> why


class TurnSource(Protocol):
    """Where the samples of a turn come from."""

    def turn(self, step: Measure) -> TurnEnd | None:
        """None where there is nothing more to come."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchEnd:
    """Where a loop ended: with an answer, or before a step that could not be taken.

    With neither, nothing more was wanted.
    """

    history: History
    boundary: Boundary | None = None
    wanted: Measure | None = None


def run_search(
    question: Question,
    search: Search,
    source: TurnSource,
    history: History,
    turns: Iterable[Turn] = (),
) -> SearchEnd:
    """Search from a history on until the answer, or until the source has nothing more."""
    taken = list(turns)
    while True:
        step = advance(question, search, history, taken)
        if isinstance(step, Answer):
            return SearchEnd(history=history, boundary=step.boundary)
        if isinstance(step, Enough):
            return SearchEnd(history=history)
        end = source.turn(step)
        if end is None:
            return SearchEnd(history=history, wanted=step)
        taken.append(_ended(step, end))
        history = history.after(end.samples, end.unmeasurable)


def _ended(step: Measure, end: TurnEnd) -> Turn:
    """A turn as the planner reads it; made without validation, as a simulation takes thousands."""
    measured = tuple(sample.candidate_id for sample in end.samples)
    facts: dict[str, Any] = {
        "number": step.turn,
        "attempt": step.attempt,
        "candidates": measured,
        "state": TurnState.DONE if measured else TurnState.FAILED,
        "refused": dict(end.unmeasurable),
    }
    return Turn.model_construct(**facts)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """A ``Search`` that looks for nothing: each turn has every candidate."""

    looks: ClassVar[bool] = False
    missing: Callable[[History], int]  # so many further turns are wanted
    open_end: bool = False  # whether more may be asked of its campaign later

    @classmethod
    def of(cls, number: int) -> Rounds:
        return cls(missing=lambda history: number - history.rounds)

    def next_step(
        self, question: Question, history: History, pending: Pending = ()
    ) -> Wanted | Answer | Enough:
        missing, line = self.missing(history) - len(pending), question.line
        if missing > 0:
            return Wanted(candidates=line, why="", remaining=(missing - 1) * len(line))
        if self.open_end or pending:
            return Enough()
        each = " of each" if len(line) > 1 else ""
        summary = f"measured without a search: {history.rounds} runs{each}"
        return Answer(boundary=question.boundary(found=False, direction="unknown", summary=summary))
