"""The probabilities after everything that was measured. Core pure logic, no I/O."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dsharness.measure.metric import Metric
from dsharness.model import Boundary
from dssearch.bayes.effect_size import Effects, effects
from dssearch.bayes.evidence import Evidence, evidence, witness
from dssearch.bayes.line_places import Split, ends, split_between
from dssearch.bayes.posterior import Posterior, weigh
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Floats, Track, track
from dssearch.question import History, Outlook, Question, Share

LEAST_IN_SCATTER = 2.0  # steps below so many times what builds differ by are not looked for
ONE_OF_TWO = 0.5  # of the lines whose builds lie in two layouts: a step shows in one of them only
SURE = 0.9  # that there is a step: more than one gap may be
APART = 0.95  # that a candidate differs from both its neighbours: then runs cannot part its gaps
LEAST_SHOWN = 0.0005  # a chance that is kept for the report
LASTS = 0.5  # of a step must be left to the end of the line


@dataclass(frozen=True, kw_only=True)
class Certainty:
    """How certain an answer must be."""

    level: float = 0.95
    real: float = 0.97  # that there is a step at all, before one is named
    none: float = 0.97  # that there is no step, before "no difference" is answered
    unseen_odds: float = 0.5  # of a step of any one size, before "no difference" is answered
    visible: float = 0.8  # of the noise of one run: smaller steps than this are not looked for
    smallest: float | None = None  # a log: instead of that, if you know what matters to you
    seen_pct: float | None = None  # "no difference" waits until a step of this would have been seen
    seen_runs: int | None = None  # at most so many of each end for that
    inside: int = 0  # places between the ends that are measured before "no difference" is answered
    every: bool = False  # whether the search goes on for a second step when one is sure
    expected: float | None = None  # the log of a difference that someone reported
    plateau: int = 3  # builds on each side of a small step before it is named
    witness_runs: int = 0  # further ones of both neighbours while the witness cannot tell
    least_runs: int = 2  # of the neighbours of what is named, and of a line that is surveyed


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """A posterior with the line it is about."""

    question: Question
    history: History
    line: Track
    low: int  # the ends that can be measured
    high: int
    failed: Mapping[str, str]  # what cannot be measured -> why
    of_source: bool  # whether a step is one of sources, whatever single builds of them cost
    hidden: float  # odds, in advance: a step that shows in one of two layouts alone, to no step
    posterior: Posterior

    @property
    def ends(self) -> tuple[str, ...]:
        return self.line.names[self.low], self.line.names[self.high]

    def runs(self, name: str) -> int:
        """How many of a candidate's runs may be used."""
        return sum(sample.valid for sample in self.history.of(name))

    def fewest_runs(self, *names: str) -> int:
        return min(map(self.runs, names))

    @property
    def decider(self) -> Metric:
        """The metric that decided: the rate where not every sample has the one asked for."""
        return self.posterior.runs.metric

    @property
    def witness(self) -> Evidence | None:
        """All runs by the witness of the metric that decides."""
        return witness(self.posterior.runs, self.history, self.line, self.low, self.high)

    def boundary(self, *, confidence: float, **facts: object) -> Boundary:
        """Return an answer, with what is alike in all of them."""
        facts = {
            "metric": self.decider.name,
            "unmeasured": dict(self.failed),
            "step_chances": self.step_chances,
            "confidence": min(1.0, confidence),  # a sum of chances may be a digit above it
            **facts,
        }
        return self.question.boundary(**facts)

    @property
    def step_chances(self) -> dict[str, float]:
        """By candidate, as far as they can be seen in a picture."""
        return {
            name: round(float(chance), 4)
            for name, chance in zip(self.line.names, self.chances(), strict=True)
            if chance >= LEAST_SHOWN
        }

    def failures(self, gap: int) -> list[int]:
        low, high = self.posterior.ends(gap)
        places = (self.line.index[name] for name in self.failed)
        return sorted(place for place in places if low < place < high)

    def split(self, gap: int, under_way: Sequence[int] = ()) -> Split | None:
        ends = self.posterior.ends(gap)
        return split_between(self.line, gap, ends, self.failures(gap), under_way)

    def names(self, gap: int) -> tuple[str, ...]:
        """Return the candidates of which one is the step when it is in this gap."""
        low, high = self.posterior.ends(gap)
        return self.line.names[low + 1 : high + 1]

    @property
    def top(self) -> int:
        """The gap to be named: the likeliest.

        Of several sure ones within which nothing is left to measure it is the first whose change
        lasts to the end of the line; where a later one takes back each, the first that goes the
        way of the whole line.
        """
        stepped = self.posterior.stepped
        sure = [int(gap) for gap in np.flatnonzero(stepped >= SURE) if self.split(int(gap)) is None]
        if not sure:
            return int(np.argmax(stepped))
        levels = self._plateaus(sure)
        whole = levels[-1] - levels[0]
        along = [
            number
            for number in range(len(sure))
            if (levels[number + 1] - levels[number]) * whole > 0
        ]
        lasting = (number for number in along if _lasts(levels, number))
        return sure[next(lasting, along[0] if along else 0)]

    def _plateaus(self, gaps: Sequence[int]) -> Floats:
        """Return the level before the first of these gaps, between each two, and after the last."""
        runs = self.posterior.runs
        parts = np.split(np.arange(len(runs.positions)), [gap + 1 for gap in gaps])
        means = (np.average(runs.middles[part], weights=runs.counts[part]) for part in parts)
        return np.fromiter(means, dtype=np.float64)

    @property
    def second_by_gap(self) -> Floats:
        """For each gap the chance that it holds a second step, the named one being the first."""
        chances: Floats = self.posterior.pairs[self.top]
        return chances

    @property
    def second(self) -> float:
        return float(self.second_by_gap.sum())

    @property
    def pair(self) -> float:
        """The chance of two steps in different gaps."""
        return float(np.triu(self.posterior.two, 1).sum())

    def settled(self, certainty: Certainty) -> bool:
        """Return (14), whether a gap surely contains a step with nothing left to measure inside.

        Whether there is a second step elsewhere is a separate question, asked after this one.
        """
        posterior, top = self.posterior, self.top
        if posterior.none > 1 - certainty.real or posterior.stepped[top] < certainty.level:
            return False
        return self.split(top) is None and not (certainty.every and self._open(certainty))

    def either(self, certainty: Certainty) -> tuple[int, int] | None:
        """Return two neighbouring gaps of which one surely holds the step, and no run tells which.

        The candidate between them differs from both sides: it is odd and one of the two is a step,
        or both are steps. However well it is measured, these look alike.
        """
        posterior, first = self.posterior, int(np.argmax(self.posterior.stepped))
        if posterior.none > 1 - certainty.real:
            return None
        for low in (first - 1, first):
            if not 0 <= low < posterior.gaps - 1:
                continue
            chance = float(posterior.stepped[low : low + 2].sum() - posterior.pairs[low, low + 1])
            if chance < certainty.level or self._width(low) > 1 or self._width(low + 1) > 1:
                continue
            odd = [float(posterior.odd_chances(gap)[low + 1]) for gap in (low, low + 1)]
            apart = float(posterior.pairs[low, low + 1]) + float(posterior.one[low : low + 2] @ odd)
            if apart >= APART * chance:
                return low, low + 1
        return None

    def _width(self, gap: int) -> int:
        low, high = self.posterior.ends(gap)
        return high - low

    def _open(self, certainty: Certainty) -> bool:
        """Return whether a second step is possible, and not yet as certain as the first."""
        if self.second < 1 - certainty.level:
            return False
        gap = int(np.argmax(self.second_by_gap))
        return self.second_by_gap[gap] < certainty.level or self.split(gap) is not None

    def least(self, certainty: Certainty) -> float:
        """Return (17), the log of the smallest step that is looked for."""
        if certainty.smallest is not None:
            return max(certainty.smallest, self.in_builds)
        return max(certainty.visible * self.posterior.noise, self.in_builds)

    @property
    def in_builds(self) -> float:
        """The log of a step that cannot be told from what builds of one source differ by."""
        return LEAST_IN_SCATTER * self.posterior.scatter

    def refuted(self, certainty: Certainty) -> bool:
        """Return (15), whether nothing looked for is there, and no size of it could hide."""
        least = self.least(certainty)
        if self._flat(least) + self.posterior.at_most_below(least) < certainty.none:
            return False
        nothing, most = self.nothing_above(least), max(least, self._wanted(certainty))
        return nothing >= certainty.none and self.unseen(certainty, nothing) < most

    def _wanted(self, certainty: Certainty) -> float:
        """Return the log of what is wanted, once both ends had the runs for it: less may hide."""
        if certainty.seen_pct is None or certainty.seen_runs is None:
            return 0.0
        over = self.fewest_runs(*self.ends) >= certainty.seen_runs
        return math.log1p(certainty.seen_pct / 100) if over else 0.0

    @cached_property
    def single(self) -> Effects:
        """The sizes of a single step, wherever it may be."""
        return effects(self.posterior)

    def unseen(self, certainty: Certainty, nothing: float) -> float:
        """The log of the largest step that could have hidden: one of too high odds against nothing.

        Whatever sizes are likely in advance: each is weighed as if it were the only one.
        """
        sizes, chance = self.single, float(self.posterior.one.sum()) / max(TINY, nothing)
        hidden = np.abs(sizes.sizes)[chance * sizes.gain > certainty.unseen_odds]
        return float(hidden.max(initial=0.0))

    def nothing(self, certainty: Certainty) -> float:
        """Return the chance of no step and no ramp, or of one too small to be looked for."""
        return self.nothing_above(self.least(certainty))

    def nothing_above(self, size: float) -> float:
        """Return the chance of no step and no ramp, or of one below that size (a log)."""
        return self._flat(size) + self.posterior.below(size)

    @property
    def by_luck(self) -> float:
        """Return (15b), the chance that a step shows in one layout, and no build after it has that.

        More runs of the same builds never show it, so they look as likely as without a step.
        """
        positions = self.posterior.runs.positions
        widths = np.diff(self.line.sums[positions])
        missed = 0.5 ** np.arange(self.posterior.gaps, 0, -1)
        shares = widths / max(TINY, float(widths.sum()))
        odds = self.hidden * float(missed @ shares)
        return odds / (1 + odds)

    def _flat(self, size: float) -> float:
        """Return the chance of no step, and of a ramp below that size."""
        posterior = self.posterior
        return posterior.none + (posterior.ramp if abs(posterior.rise) < size else 0.0)

    def ramped(self, certainty: Certainty) -> bool:
        """Return (16), whether there are many small steps instead of one."""
        posterior = self.posterior
        if posterior.ramp < certainty.level:
            return False
        return abs(posterior.rise) >= self.least(certainty) and posterior.none <= 1 - certainty.real

    def certain(self, certainty: Certainty) -> bool:
        return (
            self.settled(certainty)
            or self.ramped(certainty)
            or self.refuted(certainty)
            or self.either(certainty) is not None
        )

    def mass(self) -> Floats:
        """Of each candidate; with ``none`` and ``ramp`` of the posterior they sum to 1."""
        posterior = self.posterior
        return self._spread(posterior.one + np.diag(posterior.two) + posterior.pairs.sum(1) / 2)

    def chances(self) -> Floats:
        """Of each candidate, that it is a step, alone or with another."""
        return self._spread(self.posterior.stepped)

    def _spread(self, shares: Floats) -> Floats:
        """Return what each gap has, over its candidates."""
        line = self.line
        spread = np.zeros(len(line.names))
        for gap, share in enumerate(shares):
            low, high = self.posterior.ends(gap)
            weights = line.weights[low + 1 : high + 1]
            total = weights.sum()
            spread[low + 1 : high + 1] = share * (weights / total if total > 0 else 0.0)
        return spread

    def credible(self, level: float) -> tuple[str, ...]:
        """The fewest candidates that hold ``level`` of the mass of all steps, in line order."""
        masses = self.mass()
        return tuple(self.line.names[place] for place in fewest(masses, level) if masses[place] > 0)


def _lasts(levels: Floats, gap: int) -> bool:
    """Return whether no later level takes back half of this step or more."""
    lasting = (levels[gap + 1 :] - levels[gap]) / (levels[gap + 1] - levels[gap])
    return bool(lasting.min() >= LASTS)


def fewest(shares: Floats, part: float) -> list[int]:
    """Return the fewest places that hold that part of all shares, in their own order."""
    order = np.argsort(-shares, kind="stable")
    count = int(np.searchsorted(np.cumsum(shares[order]), part * shares.sum() - 1e-12)) + 1
    return [int(place) for place in sorted(order[:count])]


@dataclass(frozen=True, kw_only=True, eq=False)
class Tracks:
    """The tracks of the lines asked about: a line of 100,000 is laid out once."""

    prior: Mapping[str, float] = field(default_factory=dict)
    tracks: dict[int, Track] = field(default_factory=dict)

    def of(self, names: Sequence[str]) -> Track:
        line = self.tracks.get(id(names))
        if line is None or line.names is not names:
            self.tracks.clear()
            line = self.tracks[id(names)] = track(names, self.prior)
        return line


def believe(
    question: Question, history: History, line: Track, belief: Belief, failed: Mapping[str, str]
) -> Beliefs | None:
    """Return None before both ends were measured."""
    bounds = ends(line.names, failed, history.samples)
    if bounds is None:
        return None
    runs = evidence(question.decider, history, line, *bounds)
    if runs is None or (runs.positions[0], runs.positions[-1]) != bounds:
        return None
    own = belief.of(question.decider)
    return Beliefs(
        question=question,
        history=history,
        line=line,
        low=bounds[0],
        high=bounds[1],
        failed={name: why for name, why in failed.items() if name in line.index},
        of_source=belief.of_source,
        hidden=ONE_OF_TWO
        * sum(builds.chance for builds in own.scatters if builds.layouts)
        * (own.one + own.two)
        / own.none,
        posterior=weigh(runs, line, own),
    )


SHOWN = 6


def outlook(beliefs: Beliefs) -> Outlook:
    """Return the likeliest gaps with their chances."""
    posterior, names = beliefs.posterior, beliefs.line.names
    order = np.argsort(-posterior.stepped, kind="stable")[:SHOWN]
    shares = []
    for gap in order:
        low, high = posterior.ends(int(gap))
        chance = float(posterior.stepped[gap])
        shares.append(
            Share(after=names[low], last=names[high], candidates=high - low, chance=chance)
        )
    return Outlook(
        shares=tuple(share for share in shares if share.chance >= 0.005),
        none=posterior.none,
        ramp=posterior.ramp,
        two=beliefs.pair,
        noise_pct=100 * math.expm1(posterior.noise),
    )
