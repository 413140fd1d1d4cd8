"""What a campaign does next, from what is stored of it. Core pure logic, no I/O.

The search says which candidates it wants next to each other; here alone a turn gets its number,
its attempt and the order in which its candidates begin. A laboratory builds what a turn needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dsharness.errors import InconclusiveError
from dsharness.model import Sample, Turn, TurnState
from dssearch.question import Answer, Enough, History, Measure, Question, Search, Wanted
from dssearch.repeated_failure import failures_of

MOST_DISTURBED = 20  # runs in a row


def advance(
    question: Question, search: Search, history: History, turns: Sequence[Turn]
) -> Measure | Answer | Enough:
    """Return the next turn, or the answer; ``Enough`` where those under way have to end first."""
    under_way = [turn.candidates for turn in turns if turn.state is TurnState.PLANNED]
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
    )


def history_of(
    samples: Iterable[Sample],
    turns: Sequence[Turn],
    unmeasurable: Mapping[str, str],
    ends: Mapping[str, str],
) -> History:
    """Return what the stored samples and refusals say; of a turn only its whole attempt counts.

    ``unmeasurable`` is what the lab knows today, ``ends`` what it knew before the search began.
    """
    whole = {(turn.number, turn.attempt) for turn in turns if turn.state is TurnState.DONE}
    planned = {turn.number for turn in turns}
    counting = (
        each for each in samples if each.turn not in planned or (each.turn, each.attempt) in whole
    )
    _, refused = failures_of(turns, ends)
    return History.of_samples(counting, {**refused, **unmeasurable})


def refuse_endless_disturbance(samples: Sequence[Sample]) -> None:
    """InconclusiveError where all the latest were disturbed: they are repeated, not without end.

    To be asked after a turn: a campaign that goes on later may find another machine.
    """
    latest = samples[-MOST_DISTURBED:]
    if len(latest) == MOST_DISTURBED and all(sample.disturbed for sample in latest):
        reasons = "; ".join(latest[-1].disturbed)
        raise InconclusiveError(
            f"the last {MOST_DISTURBED} runs were all disturbed: {reasons}",
            hint="stop what disturbs this machine, then give the same command: it continues "
            "from here",
        )
