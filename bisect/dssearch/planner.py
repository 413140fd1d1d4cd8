"""What a campaign does next, from what is stored of it. Core pure logic, no I/O.

The search says which candidates it wants next to each other; here alone a turn gets its number,
its attempt and the order in which its candidates begin. A laboratory builds what a turn needs.
Rehearsing and replaying drive a campaign without a store: plan a turn, take it, show it all, plan
again. They differ in where a turn's samples come from. ``Rounds`` are turns without a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from dsharness.errors import InconclusiveError
from dsharness.model import Boundary, Sample, Starts, Turn, TurnState
from dssearch.question import (
    MOST_DISTURBED,
    Answer,
    Enough,
    History,
    Measure,
    Pending,
    Question,
    Search,
    Wanted,
)
from dssearch.repeated_failure import failures_of


def advance(
    question: Question, search: Search, history: History, turns: Sequence[Turn]
) -> Measure | Answer | Enough:
    """Return the next turn, or the answer; ``Enough`` where those under way have to end first."""
    under_way = [turn.candidates for turn in turns if turn.state is TurnState.PLANNED]
    if search.looks:
        history = replace(history, ends=(question.line[0], question.line[-1]))
    step = search.next_step(question, history, under_way)
    if not isinstance(step, Wanted):
        return step
    standing = [turn for turn in turns if turn.state in {TurnState.PLANNED, TurnState.DONE}]
    number = 1 + max((turn.number for turn in standing), default=-1)
    names = sorted(step.candidates, key=question.line.index)
    met = [turn.number for turn in standing if set(names) <= set(turn.candidates)]
    # A B, then B A when the two meet again: what drifts within a turn cancels over both
    first = (min([*met, number]) + len(met)) % len(names)
    return Measure(
        turn=number,
        attempt=1 + sum(turn.number == number for turn in turns),
        candidates=(*names[first:], *names[:first]),
        why=step.why,
        remaining=step.remaining,
        outlook=step.outlook,
        starts=_starts(search, step),
    )


def _starts(search: Search, step: Wanted) -> Starts:
    """What a server is like by chance, as where its memory lies, lasts until its next start."""
    if step.fresh:
        return "fresh"
    rests = search.keeps if isinstance(search, Rounds) else not search.looks
    return "kept" if rests else "afforded"


def history_of(
    samples: Iterable[Sample],
    turns: Sequence[Turn],
    unmeasurable: Mapping[str, str],
    ends: Mapping[str, str],
) -> History:
    """Return what the stored samples and refusals say; of a turn only its whole attempt counts.

    They are put in the order of turns: by their times they would be in that of machines' clocks.
    ``unmeasurable`` is what the lab knows today, ``ends`` what it knew before the search began.
    """
    whole = {(turn.number, turn.attempt) for turn in turns if turn.state is TurnState.DONE}
    planned = {turn.number for turn in turns}
    counting = [
        sample
        for sample in samples
        if sample.turn not in planned or (sample.turn, sample.attempt) in whole
    ]
    counting.sort(key=lambda sample: sample.turn)
    _, refused = failures_of(turns, ends)
    return History.of_samples(counting, {**refused, **unmeasurable})


def refuse_endless_disturbance(samples: Sequence[Sample]) -> None:
    """Raise InconclusiveError where all the latest of a machine were disturbed: not without end.

    It is the machine of the last sample. To be asked after a turn: a campaign that goes on later
    may find another machine.
    """
    machine = samples[-1].machine.id if samples else ""
    latest = [sample for sample in samples if sample.machine.id == machine][-MOST_DISTURBED:]
    if len(latest) == MOST_DISTURBED and all(sample.disturbed for sample in latest):
        reasons = "; ".join(latest[-1].disturbed)
        raise InconclusiveError(
            f"the last {MOST_DISTURBED} runs were all disturbed: {reasons}",
            hint="stop what disturbs this machine, then give the same command: it continues "
            "from here",
        )


@dataclass(frozen=True, kw_only=True)
class TurnEnd:
    """What came of one step."""

    samples: tuple[Sample, ...] = ()
    unmeasurable: Mapping[str, str] = field(default_factory=dict)  # candidate -> why


class TurnSource(Protocol):
    """Where the samples of a turn come from."""

    def turn(self, step: Measure) -> TurnEnd | None:
        """Return None where there is nothing more to come."""
        ...


@dataclass(frozen=True, kw_only=True)
class SearchEnd:
    """Where a loop ended: with an answer, or before a step that could not be taken.

    With neither, nothing more was wanted.
    """

    history: History
    boundary: Boundary | None = None
    next_turn: Measure | None = None


def run_search(
    question: Question,
    search: Search,
    source: TurnSource,
    history: History,
    turns: Iterable[Turn] = (),
) -> SearchEnd:
    """Search from a history on until the answer, or until the source has nothing more."""
    turns_so_far = list(turns)
    while True:
        step = advance(question, search, history, turns_so_far)
        if isinstance(step, Answer):
            return SearchEnd(history=history, boundary=step.boundary)
        if isinstance(step, Enough):
            return SearchEnd(history=history)
        end = source.turn(step)
        if end is None:
            return SearchEnd(history=history, next_turn=step)
        turns_so_far.append(_ended(step, end))
        history = history.after(end.samples, end.unmeasurable)


def _ended(step: Measure, end: TurnEnd) -> Turn:
    """A turn as the planner reads it; made without validation, as a simulation takes thousands."""
    candidates = tuple(sample.candidate_id for sample in end.samples)
    facts: dict[str, Any] = {
        "number": step.turn,
        "attempt": step.attempt,
        "candidates": candidates,
        "state": TurnState.DONE if candidates else TurnState.FAILED,
        "refused": dict(end.unmeasurable),
    }
    return Turn.model_construct(**facts)


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """A ``Search`` that looks for nothing: each turn has every candidate."""

    looks: ClassVar[bool] = False
    missing: Callable[[History], int]  # so many further turns are wanted
    open_end: bool = False  # whether more may be asked of its campaign later
    keeps: bool = True  # a server from one turn to the next
    later: int = 0  # samples that its user wants of other questions afterwards, for the ETA

    @classmethod
    def of(cls, number: int, *, keeps: bool = True) -> Rounds:
        return cls(missing=lambda history: number - history.rounds, keeps=keeps)

    def next_step(
        self, question: Question, history: History, pending: Pending = ()
    ) -> Wanted | Answer | Enough:
        missing, line = self.missing(history) - len(pending), question.line
        if missing > 0:
            remaining = (missing - 1) * len(line) + self.later
            return Wanted(candidates=line, why="", remaining=remaining)
        if self.open_end or pending:
            return Enough()
        of_each = " of each" if len(line) > 1 else ""
        summary = f"measured without a search: {history.rounds} runs{of_each}"
        return Answer(boundary=question.boundary(found=False, direction="unknown", summary=summary))
