"""The default search: weighs every run, and may answer "none". Core pure logic, no I/O.

It weighs everything that was measured (``posterior``), stops when the answer is certain enough or
the budget is spent, and otherwise measures what tells most per second (``next_run``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from dssearch.bayes.answer import conclude, unanswerable
from dssearch.bayes.belief import Beliefs, Certainty, Tracks, believe, outlook
from dssearch.bayes.final_checks import left_to_check
from dssearch.bayes.line_ends import ends, moved
from dssearch.bayes.next_run import (
    NextRun,
    canary_due,
    choose,
    lost_in_builds,
    session_unknown,
)
from dssearch.bayes.prior import Belief, Budget, Costs
from dssearch.question import Answer, Enough, History, Pending, Question, Wanted

SHARED_OUT = 4  # in simulated histories without a step, a run tells so much more than this says
OTHERS = (
    "other builds of both ends or longer runs would tell, "
    "and `--smallest PCT` leaves out what does not matter to you"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bayes:
    """A ``Search``."""

    looks: ClassVar[bool] = True
    certainty: Certainty = field(default_factory=Certainty)
    belief: Belief = field(default_factory=Belief)
    costs: Costs = field(default_factory=Costs)
    budget: Budget = field(default_factory=Budget)
    prior: Mapping[str, float] = field(default_factory=dict)  # relative, 1 where nothing is said
    survey_up_to: int = 0  # lines up to this length are measured completely, for the figures
    lines: Tracks = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", Tracks(prior=self.prior))

    def next_step(
        self, question: Question, history: History, pending: Pending = ()
    ) -> Wanted | Answer | Enough:
        """A run that is under way is expected to tell what a further run of its candidate would.

        So no candidate of a pending turn is chosen for what it tells, its runs count against the
        budget, and no answer is given before they are known.
        """
        step = self._step(question, history, pending)
        again = isinstance(step, Wanted) and set(step.candidates) in map(set, pending)
        return Enough() if pending and (again or isinstance(step, Answer)) else step

    def _step(self, question: Question, history: History, pending: Pending) -> Wanted | Answer:
        failed = history.failed
        line = self.lines.of(question.line)
        bounds = ends(line.names, failed, history.samples)
        if bounds is None:
            return Answer(boundary=unanswerable(question, failed))
        spent = self.budget.spent(history, self.costs, under_way=sum(map(len, pending)))
        beliefs = believe(question, history, line, self.belief, failed)
        if beliefs is not None:
            return self._continue(beliefs, spent, frozenset(chain.from_iterable(pending)))
        if spent is not None:
            return Answer(boundary=unanswerable(question, {**failed, "budget": spent}))
        pair = (line.names[bounds[0]], line.names[bounds[1]])
        why = moved(line.names, bounds) or "prove both ends"
        remaining = 2 * math.ceil(math.log2(len(line.names)))
        return Wanted(candidates=pair, why=why, remaining=remaining)

    def _continue(
        self, beliefs: Beliefs, spent: str | None, under_way: frozenset[str]
    ) -> Wanted | Answer:
        if spent is not None:
            return self._answer(beliefs, spent)
        if session_unknown(beliefs):
            return Wanted(
                candidates=beliefs.ends, why="a new session: what do the ends cost in it?",
                remaining=0, outlook=outlook(beliefs),
            )  # fmt: skip
        if beliefs.certain(self.certainty):
            last = left_to_check(beliefs, self.certainty, self.survey_up_to)
            if last is None:
                return self._answer(beliefs)
            return Wanted(
                candidates=last.names, why=last.why, remaining=0, outlook=outlook(beliefs)
            )
        lost = lost_in_builds(beliefs)
        choice = choose(
            beliefs, self.costs, self.budget, every=self.certainty.every, under_way=under_way
        )
        if lost or choice is None:
            return self._answer(beliefs, lost or "no further run would tell more", builds=True)
        return self._measure(beliefs, choice)

    def _answer(self, beliefs: Beliefs, stop: str = "", *, builds: bool = False) -> Answer:
        """``builds``: only other builds of the same sources would tell more.

        A search that stops in doubt about a second step still names the first.
        """
        certainty = replace(self.certainty, every=False) if stop else self.certainty
        left = self._left(beliefs) if stop and not beliefs.certain(certainty) else ""
        return Answer(boundary=conclude(beliefs, certainty, stop, left, builds=builds))

    def _left(self, beliefs: Beliefs) -> str:
        """What it would take; how much longer is estimated from the next run."""
        choice = choose(beliefs, self.costs, Budget(), every=self.certainty.every)
        if choice is None:
            return OTHERS
        runs = 1 + _remaining(beliefs, choice, self.certainty)
        return f"about {runs} more runs ({runs * self.costs.run_s / 60:.0f} min) may settle it"

    def _measure(self, beliefs: Beliefs, choice: NextRun) -> Wanted:
        if canary_due(beliefs):
            names = beliefs.ends
            why = "canary: do the ends still cost the same?"
        else:
            names = (choice.candidate, *((choice.reference,) if choice.reference else ()))
            why = choice.why
        return Wanted(
            candidates=names,
            why=why,
            remaining=_remaining(beliefs, choice, self.certainty),
            outlook=outlook(beliefs),
        )


def _remaining(beliefs: Beliefs, choice: NextRun, certainty: Certainty) -> int:
    """The missing bits, at the rate of the next run: a guess for the ETA.

    Where there is probably no step, a run that tells little still moves its odds: what it tells is
    shared out over the few cases in which there is one.
    """
    none = beliefs.posterior.none
    if 0.5 < none < 1:
        missing = max(0.0, _log_odds(certainty.none) - _log_odds(none)) / math.log(2)
        rate = SHARED_OUT * choice.gain / (1 - none)
    else:
        masses = beliefs.mass()
        shares = masses[masses > 0] / masses.sum()
        missing = max(0.3, -float((shares * np.log2(shares)).sum()))
        rate = choice.gain
    return max(0, min(999, math.ceil(missing / max(rate, 1e-3)) - 1))


def _log_odds(chance: float) -> float:
    return math.log(chance / (1 - chance))
