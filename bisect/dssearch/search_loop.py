"""The one loop: ask the search, take what it asks for, show it all, ask again. Core pure logic.

Measuring, rehearsing and replaying drive it; they differ in where a turn's samples come from.
``Rounds`` are turns without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from dsharness.model import Boundary, Sample
from dssearch.question import Answer, Enough, History, Measure, Question, Search


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
    question: Question, search: Search, source: TurnSource, history: History
) -> SearchEnd:
    """Search from a history on until the answer, or until the source has nothing more."""
    while True:
        step = search.next_step(question, history)
        if isinstance(step, Answer):
            return SearchEnd(history=history, boundary=step.boundary)
        if isinstance(step, Enough):
            return SearchEnd(history=history)
        turn = source.turn(step)
        if turn is None:
            return SearchEnd(history=history, wanted=step)
        history = history.after(turn.samples, turn.unmeasurable)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """A ``Search`` that looks for nothing; each turn begins with another candidate."""

    looks: ClassVar[bool] = False
    missing: Callable[[History], int]  # so many further turns are wanted
    open_end: bool = False  # whether more may be asked of its campaign later

    @classmethod
    def of(cls, number: int) -> Rounds:
        return cls(missing=lambda history: number - history.turns)

    def next_step(self, question: Question, history: History) -> Measure | Answer | Enough:
        missing, line, turns = self.missing(history), question.line, history.turns
        if missing > 0:
            first = turns % len(line)
            return Measure(
                turn=turns,
                candidates=(*line[first:], *line[:first]),
                why="",
                remaining=(missing - 1) * len(line),
            )
        if self.open_end:
            return Enough()
        each = " of each" if len(line) > 1 else ""
        summary = f"measured without a search: {turns} runs{each}"
        return Answer(boundary=question.boundary(found=False, direction="unknown", summary=summary))
