"""Peers that turn values into good and bad by a threshold they are told."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from benchmarks.search.findings import Finding, Said, step_at
from benchmarks.search.kinds import Noise
from benchmarks.search.machine import Machine
from benchmarks.search.worlds import Floats, World

LEVEL = 0.95
NO_CULPRIT = 0.3  # FACF: the chance at the start, the same as this project's own
LEAST_FLAKES = 1e-3


def facf(world: World, machine: Machine) -> Finding:
    """Flake Aware Culprit Finding, as published, with the true flake rates of both sides.

    Hypothesis k says that k is the first to fail; n says that none is. The next run halves
    their mass; it ends when one of them has the level.
    """
    good_fails, bad_fails = _flakes(world)
    chances = np.full(world.n + 1, (1 - NO_CULPRIT) / (world.n - 1))
    chances[0], chances[world.n] = 0.0, NO_CULPRIT
    if world.prior is not None:
        chances[1 : world.n] = (1 - NO_CULPRIT) * world.prior[1:] / world.prior[1:].sum()
    while chances.max() < LEVEL:
        below = np.cumsum(chances)[1 : world.n]
        at = 1 + int(np.argmin(np.abs(below - 0.5)))
        fails = _vote(world, machine, at)
        after, before = (bad_fails, good_fails) if fails else (1 - bad_fails, 1 - good_fails)
        chances[: at + 1] *= after
        chances[at + 1 :] *= before
        chances /= chances.sum()
    best = int(np.argmax(chances))
    return Finding(said=Said.NONE) if best == world.n else step_at(best)


def _usable(usable: NDArray[np.bool_], index: int, turn: int) -> int:
    if usable[index]:
        return index
    places = np.flatnonzero(usable)
    at = int(np.searchsorted(places, index))
    sides = places[max(0, at - 1) : at + 1]
    return int(sides[turn % len(sides)])


class _Bisector(Protocol):
    """What is used of git_bayesect."""

    def record(self, index: int, observation: bool | None) -> None: ...  # noqa: FBT001 - theirs

    def select(self) -> int: ...

    @property
    def distribution(self) -> Floats: ...


def git_bayesect(world: World, machine: Machine) -> Finding:
    """The published package itself; its index 0 is the newest candidate.

    Its oldest index says that all of the range fails, so naming it is taken for "none". It goes
    on asking for a candidate that was skipped; its nearest neighbours are run in its place, the
    newer and the older in turn.
    """
    newest = world.n - 1
    bisector = _bisector(world)
    usable = np.ones(world.n, dtype=np.bool_)
    while _highest(bisector) < LEVEL:
        index = _usable(usable, _asked(bisector), machine.runs)
        value = machine.run(newest - index)
        usable[index] = value is not None
        bisector.record(index, None if value is None else value > world.threshold)
    named = newest - int(np.argmax(bisector.distribution))
    return step_at(named) if named else Finding(said=Said.NONE)


def _highest(bisector: _Bisector) -> float:
    with np.errstate(divide="ignore"):  # the log of a prior of nothing, after a skip
        return float(bisector.distribution.max())


def _asked(bisector: _Bisector) -> int:
    with np.errstate(divide="ignore", invalid="ignore"):  # 0 log 0, which it then drops
        return bisector.select()


def _bisector(world: World) -> _Bisector:
    # A dependency of the benchmark only: the tests import this module without it.
    from git_bayesect import Bisector  # noqa: PLC0415

    prior = np.ones(world.n) if world.prior is None else world.prior.copy()
    made: _Bisector = Bisector(prior[::-1].copy())
    return made


def _vote(world: World, machine: Machine, at: int) -> bool:
    value = machine.run(at)
    if value is None:
        raise ValueError(f"FACF is published for candidates that build, and {at} does not")
    return value > world.threshold


def _flakes(world: World) -> tuple[float, float]:
    """How often a good candidate fails, and how often a bad one."""
    wrong = 0.0 if world.kind.noise is Noise.NIL else float(ndtr(-world.d / 2))
    wrong = max(wrong, LEAST_FLAKES)
    return wrong, 1 - wrong
