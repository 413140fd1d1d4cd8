"""The default search: weighs every run, and may answer "none". Core pure logic, no I/O.

It weighs everything that was measured (``posterior``), stops when the answer is certain enough or
the budget is spent, and otherwise measures what tells most per second (``next_run``). Some things
are still measured when the answer is already likely enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

import numpy as np

from dssearch.bayes.answer import conclude, unanswerable
from dssearch.bayes.answer_figures import (
    builds_differ,
    odd_ones,
    ramp_range,
    strays,
    visible_pct,
    witnessed,
)
from dssearch.bayes.belief import Beliefs, Certainty, Tracks, believe, outlook
from dssearch.bayes.effect_size import effects
from dssearch.bayes.line_places import ends, moved
from dssearch.bayes.next_run import (
    NextRun,
    canary_due,
    choose,
    lost_in_builds,
    most_builds,
    session_unknown,
    shared,
)
from dssearch.bayes.noise_shapes import MODES, REPEATED
from dssearch.bayes.prior import Belief, Budget, Costs
from dssearch.build_scatter import SMALL
from dssearch.question import Answer, Enough, History, Pending, Question, Wanted

CLEAR = 8.0  # times noise and scatter: then they may not
RAMP_SURE = 0.97  # that the range of a ramp is about right
MOST_RUNS = 8  # of one build, to tell it better
ODD = 2.5  # times the noise: so far off, a single run is taken again
REACH = 8  # candidates next to a step that count as its plateau


@dataclass(frozen=True, kw_only=True)
class FinalCheck:
    """One more turn before the answer is given."""

    names: tuple[str, ...]
    why: str
    fresh: bool = False  # whether its servers are started for it
    remaining: int = 0  # runs after it, roughly


def left_to_check(beliefs: Beliefs, certainty: Certainty, survey_up_to: int) -> FinalCheck | None:
    """Return the first that is missing; None when the answer can be given."""
    checks: list[Iterator[FinalCheck]] = []
    if beliefs.settled(certainty):
        checks += [
            _plateaus(beliefs, certainty),
            _neighbours(beliefs, certainty),
            _modes(beliefs),
            _witness(beliefs, certainty),
        ]
    elif beliefs.ramped(certainty):
        checks.append(_ramp(beliefs))
    elif beliefs.refuted(certainty):
        checks += [_odd_builds(beliefs), _inside(beliefs, certainty), _unseen(beliefs, certainty)]
    checks.append(_alone(beliefs))
    if len(beliefs.line.names) <= survey_up_to:
        checks.append(_every_candidate(beliefs, certainty))
    return next(itertools.chain.from_iterable(checks), None)


def _plateaus(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    """Yield unmeasured candidates next to a small step, where few builds make a plateau.

    One build may lie off its plateau by itself, and a ramp has no plateaus.
    """
    posterior = beliefs.posterior
    low, high = posterior.ends(beliefs.top)
    doubt = CLEAR * math.hypot(posterior.noise, posterior.scatter)
    if abs(math.log(effects(posterior, beliefs.top).middle)) > min(SMALL, doubt):
        return
    for side in (range(low, beliefs.low - 1, -1), range(high, beliefs.high + 1)):
        near = (beliefs.line.names[place] for place in itertools.islice(side, REACH))
        free = [name for name in near if name not in beliefs.failed]
        if sum(bool(beliefs.runs(name)) for name in free) >= certainty.plateau:
            continue
        for name in free:
            if not beliefs.runs(name):
                why = f"does {name} lie on the plateau next to the step?"
                yield FinalCheck(names=_in_company(beliefs, name), why=why)


def _neighbours(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    before, after = _pair(beliefs)
    if beliefs.fewest_runs(before, after) < certainty.least_runs:
        yield FinalCheck(names=(before, after), why=f"confirm {before} against {after}")
    starts = min(len(_starts(beliefs, name)) for name in (before, after))
    if 0 < starts < certainty.least_runs:
        why = f"do other starts of {before} and {after} cost the same?"
        yield FinalCheck(names=(before, after), why=why, fresh=True)


def _modes(beliefs: Beliefs) -> Iterator[FinalCheck]:
    """Yield runs until one candidate has enough of them to show that some are slow ones.

    Bisecting fits a step to any row of single runs: only repeated ones can contradict it.
    """
    posterior = beliefs.posterior
    before, after = _pair(beliefs)
    repeated = int((posterior.runs.counts - 1).sum())
    if repeated < REPEATED and abs(math.log(effects(posterior, beliefs.top).middle)) < MODES:
        name = min(before, after, key=beliefs.runs)
        yield FinalCheck(
            names=_in_company(beliefs, name), why=f"do all runs of {name} cost the same?"
        )


def _witness(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    """A few more runs while it cannot tell."""
    before, after = _pair(beliefs)
    if beliefs.fewest_runs(before, after) < certainty.least_runs + certainty.witness_runs:
        opinion, apart = witnessed(beliefs)
        if opinion == "cannot tell" and apart is not None:
            yield FinalCheck(names=(before, after), why="does the witness agree?")


def _ramp(beliefs: Beliefs) -> Iterator[FinalCheck]:
    """Yield, while its range is vague, the widest gap at its ends, or a build there again."""
    runs = beliefs.posterior.runs
    where = ramp_range(beliefs.posterior)
    if where.chance >= RAMP_SURE or len(runs.positions) >= most_builds(beliefs):
        return
    low, high = where.vague
    gaps = [
        gap
        for gap, (first, second) in enumerate(itertools.pairwise(runs.positions))
        if second >= low and first <= high
    ]
    middles = {gap: beliefs.split(gap) for gap in gaps}
    wide = [gap for gap in gaps if middles[gap] is not None]
    if wide:
        middle = middles[max(wide, key=lambda gap: runs.positions[gap + 1] - runs.positions[gap])]
        assert middle is not None  # noqa: S101 - chosen so
        name = beliefs.line.names[middle.position]
        yield FinalCheck(
            names=_in_company(beliefs, name), why=f"does the ramp begin or end before {name}?"
        )
        return
    near = {
        candidate
        for gap in gaps
        for candidate in (gap, gap + 1)
        if runs.counts[candidate] < MOST_RUNS
    }
    if near:
        name = beliefs.line.names[
            runs.positions[min(near, key=lambda candidate: runs.counts[candidate])]
        ]
        yield FinalCheck(
            names=_in_company(beliefs, name), why=f"does the ramp begin or end before {name}?"
        )


def _odd_builds(beliefs: Beliefs) -> Iterator[FinalCheck]:
    """Yield, before "no difference", what makes builds seem to differ or hides that ends do."""
    posterior, names, first = beliefs.posterior, beliefs.line.names, beliefs.line.names[beliefs.low]
    odd = (posterior.runs.counts == 1) & (np.abs(strays(posterior)) > ODD)
    for position in posterior.runs.positions[odd]:
        yield FinalCheck(
            names=(names[position], first), why=f"was the only run of {names[position]} an odd one?"
        )
    if not builds_differ(posterior):
        return
    half = (beliefs.high - beliefs.low) // 2
    for end, way in ((beliefs.low, 1), (beliefs.high, -1)):
        near = (names[end + way * far] for far in range(1, min(REACH, half) + 1))
        name = next((candidate for candidate in near if candidate not in beliefs.failed), None)
        if name is not None and not beliefs.runs(name):
            why = f"a second build next to {names[end]}: does {name} cost the same?"
            yield FinalCheck(names=(name, names[end]), why=why)


def _alone(beliefs: Beliefs) -> Iterator[FinalCheck]:
    """The neighbours of what differs alone: where they differ too, it was a change and its end."""
    line = beliefs.line.names
    for odd in odd_ones(beliefs):
        place = beliefs.line.index[odd.after]
        for near in (line[place - 1], line[place + 1]):
            if near not in beliefs.failed and not beliefs.runs(near):
                why = f"is {odd.after} alone, or does {near} cost the same?"
                yield FinalCheck(names=_in_company(beliefs, near), why=why)


def _inside(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    """Yield evenly spaced candidates that were not measured."""
    names = beliefs.line.names
    places = np.linspace(beliefs.low, beliefs.high, certainty.inside + 2)[1:-1]
    for place in np.unique(np.rint(places).astype(np.int64)):
        name = names[int(place)]
        if name not in beliefs.failed and not beliefs.runs(name):
            why = f"inside: does {name} cost the same as the ends?"
            yield FinalCheck(names=(name, names[beliefs.low]), why=why)


def _unseen(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    """Yield the ends until as small a step as is wanted would have been seen.

    Where builds of one source differ by more, no run can tell.
    """
    wanted, runs = certainty.seen_pct, beliefs.fewest_runs(*beliefs.ends)
    if wanted is None or beliefs.in_builds > math.log1p(wanted / 100):
        return
    most = math.inf if certainty.seen_runs is None else certainty.seen_runs
    visible = visible_pct(beliefs, certainty)
    if visible > wanted and runs < most:
        enough = runs * (math.log1p(visible / 100) / math.log1p(wanted / 100)) ** 2
        yield FinalCheck(
            names=beliefs.ends,
            why=f"would {wanted:g} % have been seen?",
            remaining=2 * math.ceil(max(0.0, min(enough, most) - runs - 1)),
        )


def _every_candidate(beliefs: Beliefs, certainty: Certainty) -> Iterator[FinalCheck]:
    """Yield every candidate of a short line."""
    line = beliefs.line
    first = line.names[beliefs.low]
    for name in line.names:
        if name not in beliefs.failed and beliefs.runs(name) < certainty.least_runs:
            names = (name, first) if name != first else (name, line.names[beliefs.high])
            yield FinalCheck(names=names, why=f"survey {name}: what does it cost?")


def _in_company(beliefs: Beliefs, name: str) -> tuple[str, ...]:
    """Add an end where a run alone says little: the machine's speed changes."""
    end = next(end for end in beliefs.ends if end != name)
    return (name, end) if shared(beliefs) else (name,)


def _pair(beliefs: Beliefs) -> tuple[str, str]:
    """Return the neighbours of the named step."""
    low, high = beliefs.posterior.ends(beliefs.top)
    return beliefs.line.names[low], beliefs.line.names[high]


def _starts(beliefs: Beliefs, name: str) -> set[tuple[str, str, int]]:
    """The starts of its server that were measured; none where an older store did not note them."""
    runs = (sample for sample in beliefs.history.of(name) if sample.valid and sample.start)
    return {(sample.machine.id, sample.session, sample.start) for sample in runs}


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
                candidates=beliefs.ends,
                why="a new session: what do the ends cost in it?",
                remaining=0,
                outlook=outlook(beliefs),
            )
        if beliefs.certain(self.certainty):
            last = left_to_check(beliefs, self.certainty, self.survey_up_to)
            if last is None:
                return self._answer(beliefs)
            return Wanted(
                candidates=last.names,
                why=last.why,
                remaining=last.remaining,
                outlook=outlook(beliefs),
                fresh=last.fresh,
            )
        lost = lost_in_builds(beliefs)
        choice = choose(
            beliefs, self.costs, self.budget, all_steps=self.certainty.every, under_way=under_way
        )
        if lost or choice is None:
            return self._answer(beliefs, lost or "no further run would tell more", builds=True)
        return self._measure(beliefs, choice)

    def _answer(self, beliefs: Beliefs, stop: str = "", *, builds: bool = False) -> Answer:
        """``builds``: only other builds of the same sources would tell more.

        A search that stops in doubt about a second step still names the first.
        """
        certainty = replace(self.certainty, every=False) if stop else self.certainty
        missing = self._left(beliefs) if stop and not beliefs.certain(certainty) else ""
        return Answer(boundary=conclude(beliefs, certainty, stop, missing, builds=builds))

    def _left(self, beliefs: Beliefs) -> str:
        """Return what it would take; how much longer is estimated from the next run."""
        choice = choose(beliefs, self.costs, Budget(), all_steps=self.certainty.every)
        if choice is None:
            return OTHERS
        runs = 1 + _remaining(beliefs, choice, self.certainty)
        minutes = max(1, round(runs * self.costs.run_s / 60))
        return f"about {runs} more runs ({minutes} min) may settle it"

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
    """Return the missing bits, at the rate of the next run: a guess for the ETA.

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
