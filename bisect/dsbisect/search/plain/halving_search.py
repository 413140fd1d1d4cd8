"""The plain search: prove both ends, halve, confirm the neighbours. Core pure logic, no I/O.

[F, ?, ?, ?, S]   both ends measured, and they differ
[F, ?, F, ?, S]   the middle is compared with the first end, turn by turn
[F, -, F, S, S]   "-" cannot be measured: it is never fast or slow
[·, -, F, S, ·]   the two neighbours are measured against each other once more
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dsbisect.search.plain.plain_answer import found, no_difference, too_few
from dsbisect.search.plain.verdicts import CandidateView, Ends, Policy, Side
from dsbisect.search.question import Answer, History, Measure, Question


@dataclass(frozen=True, kw_only=True)
class Halving:
    """A ``Search``."""

    policy: Policy = field(default_factory=Policy)

    def next_step(self, question: Question, history: History) -> Measure | Answer:
        view = CandidateView(question=question, history=history, policy=self.policy)
        line = view.line
        if len(line) < 2:
            return Answer(boundary=too_few(view))
        match view.ends:
            case Ends.OPEN:
                return _turn(view, line[-1], line[0], "prove both ends")
            case Ends.AGREE:
                return Answer(boundary=no_difference(view))
            case Ends.DIFFER:
                return _narrow(view)


def _narrow(view: CandidateView) -> Measure | Answer:
    """Halve the range between the last unchanged and the first changed candidate."""
    line = view.line
    low, high = 0, len(line) - 1
    doubtful: set[str] = set()
    while inner := [c for c in line[low + 1 : high] if c not in doubtful]:
        candidate = _pick(inner, _gaps(view, line[low], line[high]))
        match view.side(candidate)[0]:
            case Side.UNCHANGED:
                low = line.index(candidate)
            case Side.CHANGED:
                high = line.index(candidate)
            case Side.UNKNOWN:
                if not view.exhausted(candidate, line[0]):
                    step = _turn(view, candidate, line[0], f"is {candidate} fast or slow?")
                    return replace(step, likely=_likely(inner, candidate))
                doubtful.add(candidate)
    before, after = line[low], line[high]
    missing = view.policy.boundary_turns - view.pairs(after, before)
    if missing > 0 and not view.exhausted(after, before):
        return _turn(view, after, before, f"confirm {before} against {after}", confirm=missing)
    for candidate in line if len(line) <= view.policy.survey_up_to else ():
        if view.side(candidate)[0] is Side.UNKNOWN and not view.exhausted(candidate, line[0]):
            why = f"survey {candidate}: are there more steps?"
            return _turn(view, candidate, line[0], why, confirm=0)
    return Answer(boundary=found(view, before, after))


def _likely(inner: Sequence[str], candidate: str) -> tuple[str, ...]:
    """The next middle, whichever way this one goes."""
    at = inner.index(candidate)
    parts = (inner[:at], inner[at + 1 :])
    return tuple(part[(len(part) - 1) // 2] for part in parts if part)


def _gaps(view: CandidateView, before: str, after: str) -> int:
    """How many candidates between two others turned out to be unmeasurable."""
    whole = view.question.line
    between = whole[whole.index(before) + 1 : whole.index(after)]
    return sum(view.why_not(candidate) is not None for candidate in between)


def _pick(inner: Sequence[str], gaps: int) -> str:
    """The middle, or away from it after each candidate that could not be measured.

    Unmeasurable candidates come in stretches: the neighbour would be the next to fail. The
    fractions 1/2, 1/4, 3/4, 1/8, 5/8 ... fall evenly, so a stretch costs its logarithm.
    """
    fraction, part, left = 0.0, 0.5, gaps + 1
    while left:
        fraction += part * (left & 1)
        left >>= 1
        part /= 2
    return inner[min(len(inner) - 1, math.ceil(fraction * len(inner)) - 1)]


def _turn(
    view: CandidateView, one: str, other: str, why: str, confirm: int | None = None
) -> Measure:
    """A B, then B A: what drifts within a pair cancels over two turns."""
    turns = (sample.turn for group in view.history.samples.values() for sample in group)
    number = 1 + max(turns, default=-1)
    order = (one, other) if number % 2 == 0 else (other, one)
    return Measure(turn=number, candidates=order, why=why, remaining=_remaining(view, confirm))


def _remaining(view: CandidateView, confirm: int | None) -> int:
    """A guess for the ETA: two samples a turn, for ends, halvings and the confirmation."""
    policy, line = view.policy, view.line
    ends = max(0, policy.least_turns - view.pairs(line[-1], line[0]))
    unknown = [c for c in line[1:-1] if view.side(c)[0] is Side.UNKNOWN]
    survey = len(line) <= policy.survey_up_to
    candidates = len(unknown) if survey else math.ceil(math.log2(len(unknown) + 1))
    probes = policy.least_turns * candidates
    done = sum(min(view.pairs(c, line[0]), policy.least_turns) for c in unknown)
    confirmation = policy.boundary_turns - policy.least_turns if confirm is None else confirm
    return max(0, 2 * (ends + probes - done + confirmation) - 2)
