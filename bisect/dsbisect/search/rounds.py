"""Turns without a search: every candidate in each of them, until it is enough. Core pure logic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dsbisect.search.question import Answer, Enough, History, Measure, Question


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """A ``Search`` that looks for nothing; each turn begins with another candidate."""

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
