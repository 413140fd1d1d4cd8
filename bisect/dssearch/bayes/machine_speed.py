"""The machine's speed while the runs were taken, estimated from them. Core pure logic, no I/O.

The log of each cost is the level of its candidate, plus the speed in its turn, plus noise. The
speed is a random walk from turn to turn that jumps where a session begins, or it drifts steadily.
The levels are free, so that a step is not mistaken for a change of speed or the other way round;
how far the speed walks, jumps and drifts is what makes the values likeliest. A run that strays from
both weighs less, as a Student's t has it: else it would take its turn's other run with it.

How much less a run on a disturbed machine counts.

Stolen time, an unsteady calibrator and a lab without CPU are covariates: their effect on a cost is
not known in advance, so it is estimated from the runs themselves. The variance of a run is
``noise² · (1 + growth · burden²)``, and every plausible growth is weighed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpbtrf, dpbtrs

from dssearch.bayes.evidence import Evidence
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import TINY, Flags, Floats, Ints, log_sum

PACES = np.geomspace(0.003, 1.0, 8)  # variance of the speed's steps, in variances of the noise
PAIRED = np.geomspace(3.0, 3000.0, 7)  # what only turns of two can tell from noise
STILL = 1e-6  # a speed that does not walk within its session
JUMPS = (0.1, 1.0, 10.0, 1000.0)  # between sessions
DRIFT = 100.0  # variance of a steady drift over all turns
CLEAR_NATS = 2.0  # by so many nats a changing speed must explain the values better
FREE = 4  # runs more than candidates, before anything can be told
STRAY_TAIL = 4.0  # degrees of freedom: how far a run strays from its level and its turn's speed
FIRST_WEIGHT = 0.1
UP = 0.01  # the weight of a run whose time was up
REFITS = 3  # of those weights
NEAR = 2  # turns on each side, of which the median is a first guess of the speed
SAME = 1e-6  # of the noise: a rest below it is none


@dataclass(frozen=True, kw_only=True, eq=False)
class _Runs:
    """What was measured, in the order of machines and then of turns."""

    values: Floats
    own: Floats  # run, candidate: 1 where it is this one's
    turns: Ints  # of each run: turns are counted from 0
    begins: Flags  # of each turn: the first of its machine
    jumps: Flags  # of each turn: the first of its session
    weights: Floats  # of each run: how much it says, 1 where it does not stray
    prior_weights: Floats  # the same in advance: next to nothing where its time was up

    @cached_property
    def sized(self) -> Floats:
        """Of each turn: its runs, as much as they weigh."""
        return np.asarray(np.bincount(self.turns, weights=self.weights), dtype=np.float64)

    @cached_property
    def plain(self) -> _Columns:
        """What is fitted where the speed does not drift."""
        return self._columns(self.own, np.zeros(self.own.shape[1]))

    @cached_property
    def drifting(self) -> _Columns:
        """The same with the drift as one more level."""
        drift = np.linspace(-1, 1, len(self.begins))[self.turns]
        precisions = np.zeros(self.own.shape[1] + 1)
        precisions[-1] = 1 / DRIFT
        return self._columns(np.column_stack([self.own, drift]), precisions)

    def _columns(self, columns: Floats, precisions: Floats) -> _Columns:
        runs = np.column_stack([columns, self.values])
        firsts = np.flatnonzero(np.diff(self.turns, prepend=-1))
        weighed = runs * self.weights[:, None]
        return _Columns(
            runs=runs, turns=np.add.reduceat(weighed, firsts, axis=0), precisions=precisions
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columns:
    """What each run is made of, with its value as the last column."""

    runs: Floats
    turns: Floats  # the weighed sums of each turn's runs
    precisions: Floats  # of each column in advance: a precision


@dataclass(frozen=True, kw_only=True)
class _Motion:
    """How the speed changes; variances are in those of the noise."""

    pace: float = 0.0  # from turn to turn
    jump: float = 0.0  # from session to session, more than that
    drifts: bool = False  # steadily, over all turns


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    """The likeliest levels when the speed moves in one way."""

    surprise: float
    motion: _Motion
    levels: Floats
    worth: Floats  # candidate, candidate: precision of the levels, in that of one run
    speed: Floats  # of each run
    noise: float


def without_speed(evidence: Evidence, belief: Belief) -> Evidence:
    """The same without what the machine's speed explains; each candidate's noise as that leaves it.

    ``evidence`` itself when a steady machine explains the values as well.
    """
    if len(evidence.values) < len(evidence.positions) + FREE:
        return evidence
    # each machine has a speed of its own
    order = np.argsort(evidence.machines, kind="stable")
    runs = _runs(evidence, order)
    jumps = JUMPS if runs.jumps.any() else (0.0,)
    # what strays together may be right, so no run is left out in advance
    rests = _first_rests(runs, evidence.middles[evidence.owner[order]])
    first = np.maximum(FIRST_WEIGHT, _weights(rests))
    runs = replace(runs, weights=first * runs.prior_weights)
    still, best = _steady(runs, jumps, belief), _moving(runs, jumps, belief)
    runs = _reweighed(runs, min(still, best, key=lambda fit: fit.surprise))
    still, best = _steady(runs, jumps, belief), _moving(runs, jumps, belief)
    if best.surprise + (0.0 if _paired(runs) else CLEAR_NATS) > still.surprise:
        if not runs.jumps.any():
            return evidence
        best = still
    speed, weights = np.empty_like(best.speed), np.empty_like(best.speed)
    speed[order], weights[order] = best.speed, runs.weights
    fit = replace(best, speed=speed)
    return _seen_at(evidence, fit, weights, _absorbed(runs, fit.motion))


def _runs(evidence: Evidence, order: Ints) -> _Runs:
    machines, sessions, turns = (
        column[order] for column in (evidence.machines, evidence.sessions, evidence.turns)
    )
    new_machine = np.diff(machines, prepend=-1) > 0
    new_turn = new_machine | (np.diff(turns, prepend=-1) != 0)
    new_session = ~new_machine & (np.diff(sessions, prepend=0) != 0)
    own = np.zeros((len(order), len(evidence.positions)))
    own[np.arange(len(order)), evidence.owner[order]] = 1.0
    return _Runs(
        values=evidence.values[order],
        own=own,
        turns=np.cumsum(new_turn) - 1,
        begins=new_machine[new_turn],
        jumps=new_session[new_turn],
        weights=np.ones(len(order)),
        prior_weights=np.where(evidence.open_ended[order], UP, 1.0),
    )


def _paired(runs: _Runs) -> bool:
    """Whether most turns are of two, which have the same speed: nothing is lost by removing it."""
    return len(runs.values) >= 1.5 * len(runs.begins)


def _steady(runs: _Runs, jumps: Sequence[float], belief: Belief) -> _Fit:
    return _best(runs, [_Motion(jump=jump) for jump in jumps], belief)


def _moving(runs: _Runs, jumps: Sequence[float], belief: Belief) -> _Fit:
    # with one run a turn, a speed that changes at will explains anything
    paces = [*PACES, *PAIRED] if _paired(runs) else PACES
    drifts = [_Motion(jump=jump, drifts=True) for jump in jumps]
    walks = itertools.product(paces, jumps)
    motions = [*drifts, *(_Motion(pace=float(pace), jump=jump) for pace, jump in walks)]
    return _best(runs, motions, belief)


def _best(runs: _Runs, motions: Sequence[_Motion], belief: Belief) -> _Fit:
    """Few turns of the same two do not tell the noise from the walk: what is usual decides."""
    fits = (_fit(runs, motion) for motion in motions)
    weighed = (
        replace(fit, surprise=fit.surprise - belief.log_noise_prior(fit.noise)) for fit in fits
    )
    return min(weighed, key=lambda fit: fit.surprise)


def _seen_at(evidence: Evidence, fit: _Fit, weights: Floats, absorbed: float) -> Evidence:
    level = fit.levels[evidence.owner]
    noise = evidence.values - fit.speed - level
    # the speed has taken a part of the noise with it
    free = max(1.0, evidence.repeated - absorbed)
    size = np.sqrt(max(TINY, float(noise @ (noise * weights))) / free)
    counts = np.bincount(evidence.owner, weights=weights)
    common = 1 / float(fit.worth.sum()) - 1 / float(weights.sum())
    doubt = counts * (np.diag(np.linalg.inv(fit.worth)) - common)
    wider = np.sqrt(np.maximum(1.0, doubt))[evidence.owner]
    alone = (
        np.bincount(evidence.turns - evidence.turns.min())[evidence.turns - evidence.turns.min()]
        == 1
    )
    return replace(
        evidence,
        speed_scatter=float(np.std(fit.speed[alone])) if alone.any() else 0.0,
        absorbed=absorbed,
        # the noise is told from the values in their scales
        values=level + noise * wider * min(3.0, fit.noise / size),
        scales=evidence.scales * wider,
        below=evidence.below * wider,
        above=evidence.above * wider,
    )


def _absorbed(runs: _Runs, motion: _Motion) -> float:
    """As many runs as the speeds of the turns explain: all turns but one where it walks at will.

    That is the trace of the smoother of a walk. With turns of one, the noise and the walk are told
    from each other by their sum alone.
    """
    pace = motion.pace * len(runs.values) / len(runs.begins)
    return float(np.sum(~runs.begins) * np.sqrt(pace / (pace + 4)))


def _fit(runs: _Runs, motion: _Motion) -> _Fit:
    """The speed w in (1): generalised least squares; the inverse of a walk is tridiagonal."""
    count, free = runs.own.shape[1], len(runs.values) - runs.own.shape[1]
    fitted = runs.drifting if motion.drifts else runs.plain
    columns, weighed = fitted.runs[:, :-1], fitted.runs
    size = -np.log(1 / DRIFT) if motion.drifts else 0.0
    if motion.pace > 0 or motion.jump > 0:
        walk = np.maximum(STILL, motion.pace) + motion.jump * runs.jumps
        bands = _walk_bands(runs, walk)
        # scipy's own wrappers of these take longer than the work itself
        root, _ = dpbtrf(bands)
        weighed = fitted.runs - dpbtrs(root, fitted.turns)[0][runs.turns]
        size += 2 * float(np.log(root[1]).sum()) + float(np.log(walk).sum())
    heavy = columns * runs.weights[:, None]
    worth = heavy.T @ weighed[:, :-1] + np.diag(fitted.precisions)
    solution = np.asarray(np.linalg.solve(worth, heavy.T @ weighed[:, -1]), dtype=np.float64)
    noise = weighed[:, -1] - weighed[:, :-1] @ solution  # the noise's part
    levels: Floats = solution[:count]
    deviations = runs.values - runs.own @ levels
    square = max(TINY, float(deviations @ (noise * runs.weights)))
    surprise = 0.5 * (size + float(np.linalg.slogdet(worth)[1]) + free * np.log(square))
    return _Fit(
        surprise=surprise,
        motion=motion,
        levels=levels,
        worth=_without_drift(worth, len(levels)),
        speed=deviations - noise,
        noise=float(np.sqrt(square / free)),
    )


def _walk_bands(runs: _Runs, walk: Floats) -> Floats:
    """Return the speed's precision after the runs: one over the variance of each step."""
    bands = np.zeros((2, len(walk)))
    bands[1] = runs.sized + 1 / walk
    goes_on = np.where(runs.begins[1:], 0.0, 1.0)
    bands[1, :-1] += goes_on / walk[1:]
    bands[0, 1:] = -goes_on / walk[1:]
    return bands


def _without_drift(worth: Floats, count: int) -> Floats:
    """Return the precision of the levels alone, whatever the drift is."""
    if len(worth) == count:
        return worth
    shared = worth[:count, count:]
    alone: Floats = worth[:count, :count] - shared @ shared.T / worth[count, count]
    return alone


def _first_rests(runs: _Runs, middles: Floats) -> Floats:
    """How far each run lies off its candidate's median and the median of the turns around it."""
    deviations = runs.values - middles
    firsts = np.flatnonzero(np.diff(runs.turns, prepend=-1))
    parts = np.flatnonzero(runs.begins | runs.jumps)
    first, last = parts, np.append(parts[1:], len(runs.begins)) - 1
    part = np.searchsorted(parts, np.arange(len(firsts)), side="right") - 1
    turns = np.arange(len(firsts))
    begin = firsts[np.maximum(turns - NEAR, first[part])]
    ends = np.append(firsts, len(deviations))
    end = ends[np.minimum(turns + NEAR, last[part]) + 1]
    speed = np.array(
        [np.median(deviations[first:last]) for first, last in zip(begin, end, strict=True)]
    )
    off: Floats = deviations - speed[runs.turns]
    return off


def _weights(deviations: Floats) -> Floats:
    """Return how much runs say that lie so far off; what ran once may be where its level is."""
    sizes = np.abs(deviations)[np.abs(deviations) > SAME * np.abs(deviations).max(initial=TINY)]
    if not len(sizes):
        return np.ones(len(deviations))
    size = 1.4826 * float(np.median(sizes))
    return np.asarray(np.minimum(1.0, (STRAY_TAIL + 1) / (STRAY_TAIL + (deviations / size) ** 2)))


def _reweighed(runs: _Runs, fit: _Fit) -> _Runs:
    """Return the same with the weights that this motion of the speed leaves."""
    for _ in range(REFITS):
        deviations = runs.values - runs.own @ fit.levels - fit.speed
        runs = replace(runs, weights=_weights(deviations) * runs.prior_weights)
        fit = _fit(runs, fit.motion)
    return runs


GROWTHS = np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
PRIOR = np.array([0.25, 0.17, 0.17, 0.15, 0.11, 0.08, 0.05, 0.02])
NOISES = np.geomspace(0.25, 4.0, 17)  # around the one that the residuals suggest
TAIL = 4.0  # degrees of freedom


def widened(evidence: Evidence) -> Evidence:
    """Multiply the noise of burdened runs, (5); ``evidence`` itself where there are none."""
    if not np.any(evidence.burden > 0):
        return evidence
    chances = _chances(_residuals(evidence), evidence.burden)
    variance = 1 + evidence.burden**2 * float(chances @ GROWTHS)
    return replace(evidence, scales=evidence.scales * np.sqrt(variance))


def _residuals(evidence: Evidence) -> Floats:
    """Return those of candidates that ran more than once, corrected for the median; else NaN."""
    counts = evidence.counts[evidence.owner]
    deviations: Floats = evidence.values - evidence.middles[evidence.owner]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(counts > 1, deviations * np.sqrt(counts / (counts - 1.0)), np.nan)


def _chances(deviations: Floats, load: Floats) -> Floats:
    """Return that of each growth, after what the runs say."""
    repeated = np.isfinite(deviations)
    if not np.any(repeated):
        return PRIOR
    deviations, load = deviations[repeated], load[repeated]
    size = max(1e-4, 1.4826 * float(np.median(np.abs(deviations))))
    scales = np.sqrt(1 + GROWTHS[:, None] * load[None, :] ** 2)
    noise = size * NOISES[:, None, None] * scales[None]
    densities = -np.log(noise) - (TAIL + 1) / 2 * np.log1p((deviations / noise) ** 2 / TAIL)
    likely = log_sum(densities.sum(-1), axis=0) + np.log(PRIOR)
    chances: Floats = np.exp(likely - log_sum(likely))
    return chances / max(TINY, float(chances.sum()))
