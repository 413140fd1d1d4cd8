"""The figures an answer shows: steps, verdicts, what could have been seen. Core pure logic.

Where CPU time decides, one of them is whether the rate agrees. Only the rate shows locks and
queues, but it is several times as noisy. So it is a separate series with its own noise, and it is
asked one question: does it contradict?
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import chdtrc, ndtri

from dsharness.model import CostStep, ImportWorkload, Outcome, Sample, Verdict
from dssearch.bayes.belief import Beliefs, Certainty
from dssearch.bayes.effect_size import effects
from dssearch.bayes.evidence import Evidence, evidence
from dssearch.bayes.posterior import Posterior
from dssearch.bayes.track import TINY, Flags, Floats, Ints

CLEAR = 2.58  # standard errors
PART = 0.5  # of the decider's difference: a witness that shows this much does not contradict
NOISE = 0.13  # of one run's rate, before any is known (docs/verdicts.md: 13 to 26 %)
MEDIAN = 1.25  # error of a median over that of a mean
NOISE_RUNS = 2.0  # and this counts as this many runs

Word = Literal["agrees", "cannot tell", "contradicts"]


@dataclass(frozen=True, kw_only=True)
class RateDifference:
    """A difference of logs with its standard error."""

    size: float
    error: float


def contradicts(decider: RateDifference, witness: RateDifference) -> bool:
    """Return (19), whether it differs clearly from the decider and is less than half of it."""
    along = witness.size * math.copysign(1.0, decider.size)
    apart = abs(decider.size) - along
    error = math.hypot(decider.error, witness.error)
    return along < PART * abs(decider.size) and apart > CLEAR * error


def word(decider: RateDifference, witness: RateDifference | None) -> Word:
    if witness is None:
        return "cannot tell"
    if contradicts(decider, witness):
        return "contradicts"
    along = witness.size * math.copysign(1.0, decider.size)
    return "agrees" if along > CLEAR * witness.error else "cannot tell"


def expected(decider: RateDifference, share: float) -> RateDifference:
    """Return (18a), the least a witness shows of it where only this share of its time is CPU."""
    size = math.log1p(share * math.expm1(abs(decider.size)))
    slope = share * math.exp(abs(decider.size) - size)
    return RateDifference(size=math.copysign(size, decider.size), error=slope * decider.error)


def computing(samples: Iterable[Sample]) -> float:
    """The part of an operation's time that its server computes, at least; 1 if that is unknown.

    Operations that wait at once share the time of each of them.
    """
    shares = []
    for sample in samples:
        each_us, rate, load = sample.value("cpu"), sample.value("rate"), sample.workload
        if not each_us or not rate or load is None or isinstance(load, ImportWorkload):
            return 1.0
        shares.append(min(1.0, each_us / 1e6 * rate / load.at_once))
    return float(np.median(shares)) if shares else 1.0


def difference(runs: Evidence, before: Ints, after: Ints) -> RateDifference | None:
    """Return (18) for the runs of some candidates (positions) and of others; None without both."""
    places = runs.positions[runs.owner]
    first, second = np.isin(places, before), np.isin(places, after)
    if not first.any() or not second.any():
        return None
    noise = _noise(runs)
    weights = 1 / runs.scales**2
    error = MEDIAN * noise * math.sqrt(1 / weights[first].sum() + 1 / weights[second].sum())
    error = math.hypot(error, _offset_error(runs, first, second))
    size = float(np.median(runs.values[second]) - np.median(runs.values[first]))
    return RateDifference(size=size, error=error)


def _offset_error(runs: Evidence, first: Flags, second: Flags) -> float:
    """Return what the machines' offsets add, where both sides were not measured alike on each."""
    count = len(runs.doubts)
    before, after = (
        np.bincount(runs.machines[side], minlength=count) / side.sum() for side in (first, second)
    )
    return float(np.linalg.norm((after - before) * runs.doubts))


def _noise(runs: Evidence) -> float:
    """Return that of one run, from what runs of each candidate differ by and from what is usual."""
    deviations: Floats = (runs.values - runs.middles[runs.owner]) / runs.scales
    square = NOISE_RUNS * NOISE**2 + float(deviations @ deviations)
    return math.sqrt(square / (NOISE_RUNS + runs.freedom))


LIKELY = 0.5  # of a step, that it is told, and ends a plateau
EARLY_AND_LATE = 4  # runs of one candidate in each half, before they are compared
RARE = 0.001  # a chance
SURE = 0.95  # that a candidate is an odd one
SURE_OF_ODD = 1.96  # standard errors: as sure of how far it lies off
STRAY = 4.5  # standard errors


def steps(beliefs: Beliefs, certainty: Certainty) -> tuple[CostStep, ...]:
    """Return every gap that more likely than not holds a step, with its size."""
    posterior, names = beliefs.posterior, beliefs.line.names
    found_steps = []
    for gap in np.flatnonzero(posterior.stepped >= LIKELY):
        low, high = posterior.ends(int(gap))
        ratio, interval = step_ratio(beliefs, int(gap), certainty.level)
        found_steps.append(
            CostStep(before=names[low], after=names[high], ratio=ratio, interval=interval)
        )
    return tuple(found_steps)


def step_ratio(
    beliefs: Beliefs, gap: int | tuple[int, int], level: float
) -> tuple[float, tuple[float, float]]:
    """Return after over before: of sources by all runs, of packages by those of the two alone.

    What builds differ by is in the interval of sources; a package is what it is.
    """
    if not beliefs.of_source:
        low, high = (gap, gap) if isinstance(gap, int) else gap
        return own_ratio(beliefs, low, high + 1, level)
    effect = effects(beliefs.posterior, gap)
    return effect.middle, effect.interval(level)


def own_ratio(
    beliefs: Beliefs, first: int, second: int, level: float
) -> tuple[float, tuple[float, float]]:
    """The second's cost over the first's by their own runs, with what noise makes of so many."""
    posterior, runs = beliefs.posterior, beliefs.posterior.runs.counts
    square = sum(_error_of_median(int(runs[candidate])) ** 2 for candidate in (first, second))
    half = float(ndtri((1 + level) / 2)) * posterior.noise * math.sqrt(square)
    middle = float(posterior.runs.middles[second] - posterior.runs.middles[first])
    return math.exp(middle), (math.exp(middle - half), math.exp(middle + half))


def _error_of_median(runs: int) -> float:
    """Return it in the noise of one run; the median of one or two is the mean."""
    return (MEDIAN if runs > 2 else 1.0) / math.sqrt(runs)


def odd_ones(beliefs: Beliefs) -> tuple[CostStep, ...]:
    """Return what differs alone: it lies off the level that holds before and after it."""
    posterior, names = beliefs.posterior, beliefs.line.names
    stepped = posterior.stepped >= LIKELY
    if stepped.sum() > 1:
        return ()  # each is a step of its own
    gap = int(np.argmax(stepped)) if stepped.any() else None
    chances, middles, positions = (
        posterior.odd_chances(gap),
        posterior.runs.middles,
        posterior.runs.positions,
    )
    late = np.arange(len(chances)) > (len(chances) if gap is None else gap)
    odd = []
    for candidate in np.flatnonzero(chances >= SURE):
        apart = float(
            middles[candidate] - np.median(middles[(late == late[candidate]) & (chances < 0.5)])
        )
        half = (
            SURE_OF_ODD * posterior.noise * _error_of_median(int(posterior.runs.counts[candidate]))
        )
        odd.append(
            CostStep(
                before=names[positions[candidate - 1]],
                after=names[positions[candidate]],
                ratio=math.exp(apart),
                interval=(math.exp(apart - half), math.exp(apart + half)),
            )
        )
    return tuple(odd)


def verdicts(beliefs: Beliefs, certainty: Certainty, *, slower: bool | None) -> tuple[Verdict, ...]:
    """Return one for every measured candidate; ``slower`` is None where no step is named."""
    top, posterior = beliefs.top, beliefs.posterior
    chance = float(posterior.stepped[top])
    outcomes = []
    for index, position in enumerate(posterior.runs.positions):
        name = beliefs.line.names[position]
        changed = index > top
        outcome, why = Outcome.INCONCLUSIVE, "no step is certain enough"
        if slower is not None and chance >= certainty.level:
            outcome = Outcome.SLOW if changed is slower else Outcome.FAST
            why = f"{'at or after' if changed else 'before'} the step, chance {chance:.1%}"
        ratio, interval = (1.0, (1.0, 1.0))
        if index > 0:
            ratio, interval = own_ratio(beliefs, 0, index, certainty.level)
        outcomes.append(
            Verdict(
                candidate=name,
                outcome=outcome,
                why=why,
                ratio_to_first=ratio,
                interval=interval,
                samples=tuple(s.id for s in beliefs.history.of(name) if s.valid),
            )
        )
    return tuple(outcomes)


def visible_pct(beliefs: Beliefs, certainty: Certainty) -> float:
    """Return the size that a step which was missed does not exceed, with the level of certainty.

    In whole percent, rounded up: nobody reads more of it. Never less than is looked for, than what
    could have hidden, than what the ends differ by, or than the speeds taken out.
    """
    effect, joint = beliefs.single, beliefs.posterior
    order = np.argsort(np.abs(effect.sizes))
    index = int(np.searchsorted(np.cumsum(effect.posterior[order]), certainty.level))
    missed = float(np.abs(effect.sizes[order[min(index, len(order) - 1)]]))
    least = max(
        beliefs.least(certainty),
        beliefs.unseen(certainty, beliefs.nothing(certainty)) + joint.grid.width / 2,
        abs(ends_apart(joint)),
        joint.runs.speed_scatter,
    )
    return float(math.ceil(100 * math.expm1(max(missed + joint.grid.width / 2, least))))


def ends_apart(posterior: Posterior) -> float:
    """Return by how much the last end differs from the first: a log."""
    return float(posterior.runs.middles[-1] - posterior.runs.middles[0])


def builds_differ(posterior: Posterior) -> bool:
    """Return whether the candidates differ by clearly more than the noise of their runs."""
    square = float(posterior.runs.counts @ strays(posterior) ** 2)
    return bool(chdtrc(posterior.gaps, square) < RARE)


def strays(posterior: Posterior) -> Floats:
    """Return how far each measured candidate lies off the mean of all runs, in the noise of one."""
    levels, counts = posterior.runs.middles, posterior.runs.counts
    middle = float(counts @ levels) / float(counts.sum())
    far: Floats = (levels - middle) / posterior.noise
    return far


def unsteady(beliefs: Beliefs) -> str | None:
    """The canary: the same candidate early and late must cost the same."""
    # as measured: the posterior no longer contains what the machine's speed explains
    runs = evidence(
        beliefs.question.decider, beliefs.history, beliefs.line, beliefs.low, beliefs.high
    )
    worst, text = STRAY, None
    if runs is None:
        return None
    for index, position in enumerate(runs.positions):
        own = runs.values[runs.owner == index]
        half = len(own) // 2
        if half < EARLY_AND_LATE:
            continue
        change = float(np.median(own[-half:]) - np.median(own[:half]))
        strays = abs(change) / (beliefs.posterior.noise * 1.25 * math.sqrt(2 / half))
        if strays > worst:
            worst = strays
            text = (
                f"{beliefs.line.names[position]} cost {math.exp(change):.2f} times as much "
                "late as early, so the machine has changed"
            )
    return text


def witnessed(beliefs: Beliefs) -> tuple[Word | None, RateDifference | None]:
    """Return what the witness says of the named step, and its own difference."""
    rates = beliefs.witness
    if rates is None:
        return None, None
    before, after = sides(beliefs, *beliefs.posterior.ends(beliefs.top))
    decider = difference(beliefs.posterior.runs, before, after)
    apart = difference(rates, before, after)
    assert decider is not None  # noqa: S101 - both sides of a named gap were measured
    cheaper = before if decider.size > 0 else after
    names, history = beliefs.line.names, beliefs.history
    runs = (sample for place in cheaper for sample in history.of(names[place]) if sample.valid)
    return word(expected(decider, computing(runs)), apart), apart


def sides(beliefs: Beliefs, low: int, high: int) -> tuple[Ints, Ints]:
    """What was measured from a step before a place up to it, and from another to the next step."""
    posterior, places = beliefs.posterior, beliefs.posterior.runs.positions
    steps = [posterior.ends(int(gap)) for gap in np.flatnonzero(posterior.stepped >= LIKELY)]
    first = max((end for _, end in steps if end <= low), default=places[0])
    last = min((begin for begin, _ in steps if begin >= high), default=places[-1])
    before = places[(places >= first) & (places <= low)]
    return before, places[(places >= high) & (places <= last)]


PLACES = (1 / 6, 1 / 2, 5 / 6)  # of a start or an end within its gap
HALF = 0.5  # of the range must lie on the ramp, and of the ramp in the range
DOUBT = (0.1, 0.9)


@dataclass(frozen=True, kw_only=True)
class RampRange:
    """Positions of the first and the last of the many steps."""

    first: int
    last: int
    chance: float  # that half of the range lies on the ramp, and half of the ramp in the range
    vague: tuple[int, int]  # positions between which the less certain end lies


def ramp_range(posterior: Posterior) -> RampRange:
    """Return the medians of start and end; (10) for their chances."""
    starts, ends, weights = _points(posterior)
    first, last = _quantile(starts, weights, 0.5), _quantile(ends, weights, 0.5)
    common = np.minimum(ends, last) - np.maximum(starts, first) + 1
    longest = np.maximum(ends - starts, last - first) + 1
    vague = max(
        (tuple(_quantile(points, weights, part) for part in DOUBT) for points in (starts, ends)),
        key=lambda interval: interval[1] - interval[0],
    )
    return RampRange(
        first=first,
        last=max(first + 1, last),
        chance=float(weights[common >= HALF * longest].sum()),
        vague=(vague[0], vague[1]),
    )


def _points(posterior: Posterior) -> tuple[Ints, Ints, Floats]:
    """Return starts and ends with their chances."""
    low, high = posterior.runs.positions[:-1], posterior.runs.positions[1:]
    places = low[:, None] + 1 + np.rint(np.outer(high - low - 1, PLACES)).astype(np.int64)
    gaps, count = len(low), len(PLACES)
    shape = (gaps, count, gaps, count)
    starts = np.broadcast_to(places[:, :, None, None], shape).ravel()
    ends = np.broadcast_to(places[None, None, :, :], shape).ravel()
    ramps = np.broadcast_to(posterior.ramps[:, None, :, None], shape).ravel()
    weights = np.where(ends > starts, ramps, 0.0)
    return starts, ends, weights / max(TINY, float(weights.sum()))


def _quantile(points: Ints, weights: Floats, part: float) -> int:
    order = np.argsort(points, kind="stable")
    index = int(np.searchsorted(np.cumsum(weights[order]), part))
    return int(points[order[min(index, len(points) - 1)]])
