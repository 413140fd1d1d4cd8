"""Simulated histories of which the truth is known exactly. A world is a value of kind and seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]

QUIET, LOUD = 0.05, 0.2  # the noise of one run on shared machines (docs/verdicts.md)
LIKELY, UNLIKELY = 3.0, 0.5  # the weights that `commits` gives to hot paths and to all others
STRETCHES = 3


class Truth(StrEnum):
    STEP = "one step"
    NONE = "no step"
    TWO = "two steps"
    BACK = "a step and back"
    DRIFT = "drift"


class Noise(StrEnum):
    GAUSSIAN = "Gaussian"
    HEAVY = "heavy tails"
    BIMODAL = "bimodal"
    NIL = "nil"


class Hint(StrEnum):
    """What a prior says about the culprit."""

    NOTHING = "none"
    RIGHT = "right"
    WRONG = "wrong"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Which worlds are drawn; a step is ``d`` times the noise of one run."""

    n: int = 128
    d: float = 2.0
    truth: Truth = Truth.STEP
    noise: Noise = Noise.GAUSSIAN
    wanders: bool = False  # the machine's speed, by 30 %
    gaps: bool = False  # stretches that cannot be built
    hint: Hint = Hint.NOTHING


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Levels are logs: of the cost per operation, relative to the first candidate."""

    kind: Kind
    seed: int
    sigma: float
    levels: Floats
    steps: tuple[int, ...]  # each is the first candidate of a new level
    broken: frozenset[int]
    phase: float
    prior: Floats | None = field(default=None)

    @property
    def n(self) -> int:
        return self.kind.n

    @property
    def size(self) -> float:
        """Of one step; where there is none, of the step that someone would look for."""
        return self.kind.d * self.sigma

    @property
    def threshold(self) -> float:
        """Half-way up the first step: what a search by votes has to be told."""
        return self.size / 2

    def answer(self, step: int) -> frozenset[int]:
        """The fewest candidates to which measuring can narrow this step down."""
        low, high = step - 1, step
        while low in self.broken:
            low -= 1
        while high in self.broken:
            high += 1
        return frozenset(range(low + 1, high + 1))


def draw(kind: Kind, seed: int) -> World:
    """Worlds of one seed share their noise and, for equal n, their places."""
    rng = np.random.default_rng([seed, 0])
    sigma = math.exp(rng.uniform(math.log(QUIET), math.log(LOUD)))
    phase = rng.uniform(0.0, 2 * math.pi)
    places = rng.choice(kind.n - 1, size=2, replace=False) + 1
    steps = _steps(kind.truth, int(places[0]), int(places[1]))
    broken = _broken(rng, kind.n, int(places[0])) if kind.gaps else frozenset[int]()
    return World(
        kind=kind,
        seed=seed,
        sigma=sigma,
        levels=_levels(kind, steps, kind.d * sigma),
        steps=steps,
        broken=broken,
        phase=phase,
        prior=_prior(rng, kind, int(places[0])),
    )


def _steps(truth: Truth, one: int, other: int) -> tuple[int, ...]:
    match truth:
        case Truth.STEP:
            return (one,)
        case Truth.TWO | Truth.BACK:
            return (min(one, other), max(one, other))
        case Truth.NONE | Truth.DRIFT:
            return ()


def _levels(kind: Kind, steps: tuple[int, ...], size: float) -> Floats:
    levels = np.zeros(kind.n)
    if kind.truth is Truth.DRIFT:
        return np.linspace(0.0, size, kind.n)
    for at, step in enumerate(steps):
        levels[step:] += -size if at and kind.truth is Truth.BACK else size
    return levels


def _broken(rng: Generator, n: int, step: int) -> frozenset[int]:
    """Some stretches; half of the worlds have one over the step. Both ends can be built."""
    longest = max(1, n // 16)
    found: set[int] = set()
    for at in range(STRETCHES):
        length = int(rng.integers(1, longest + 1))
        start = int(rng.integers(1, n))
        if at == 0 and rng.random() < 0.5:
            start = step - int(rng.integers(0, length + 1))
        found.update(range(start, start + length))
    return frozenset(each for each in found if 0 < each < n - 1)


def _prior(rng: Generator, kind: Kind, step: int) -> Floats | None:
    """A quarter of the candidates look suspicious; the culprit among them, or not."""
    if kind.hint is Hint.NOTHING:
        return None
    prior = np.where(rng.random(kind.n) < 0.25, LIKELY, UNLIKELY)
    prior[step] = LIKELY if kind.hint is Hint.RIGHT else UNLIKELY
    return prior
