"""Simulated histories of which the truth is known exactly. A world is a value of kind and seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from searchbench.kinds import RAMP, Hint, Kind, Truth

Floats = NDArray[np.float64]

LIKELY, UNLIKELY = 3.0, 0.5  # the weights that `commits` gives to hot paths and to all others
STRETCHES = 3
DRAWN, SCATTER, ODD = 0, 3, 5  # streams of chance of one seed; the machine has others
NEXT_NIGHT = 1_000_000  # between the seeds of one history's nights: more than there are histories


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Levels are logs: of the cost per operation, relative to the first candidate."""

    kind: Kind
    seed: int
    sigma: float
    levels: Floats  # of the source
    steps: tuple[int, ...]  # each is the first candidate of a new level; all of a ramp
    broken: frozenset[int]
    phase: float
    scatter: Floats | None = field(default=None)  # what each build adds to the level of its source
    prior: Floats | None = field(default=None)

    @property
    def n(self) -> int:
        return len(self.levels)

    @property
    def size(self) -> float:
        """Of one step; where there is none, of the step that someone would look for."""
        return step_size(self.kind, self.sigma)

    @property
    def d(self) -> float:
        return abs(self.size) / self.sigma

    @property
    def threshold(self) -> float:
        """Half-way up the first step: what a search by votes has to be told."""
        return self.size / 2

    def built(self, at: int) -> float:
        """The level of a candidate's build."""
        return float(self.levels[at]) + (0.0 if self.scatter is None else float(self.scatter[at]))

    def jump(self, step: int) -> float:
        return float(self.levels[step] - self.levels[step - 1])

    def answer(self, step: int) -> frozenset[int]:
        """The fewest candidates to which measuring can narrow this step down."""
        low, high = step - 1, step
        while low in self.broken:
            low -= 1
        while high in self.broken:
            high += 1
        return frozenset(range(low + 1, high + 1))


def step_size(kind: Kind, sigma: float) -> float:
    return kind.d * sigma if kind.step_pct is None else math.log1p(kind.step_pct / 100)


def draw(kind: Kind, seed: int) -> World:
    """Worlds of one seed share their noise and, for equal n, their places."""
    rng = np.random.default_rng([seed, DRAWN])
    quiet, loud = (math.log(pct / 100) for pct in kind.cv_pct)
    sigma = math.exp(rng.uniform(quiet, loud))
    phase = rng.uniform(0.0, 2 * math.pi)
    places = rng.choice(kind.n - 1, size=2, replace=False) + 1
    steps = _steps(kind, int(places[0]), int(places[1]))
    broken = _broken(rng, kind.n, int(places[0])) if kind.gaps else frozenset[int]()
    return World(
        kind=kind,
        seed=seed + (kind.night - 1) * NEXT_NIGHT,
        sigma=sigma,
        levels=np.pad(_levels(kind, steps, step_size(kind, sigma)), (0, _later(kind)), mode="edge"),
        steps=steps,
        broken=broken,
        phase=phase,
        scatter=_scatter(kind, seed, steps),
        prior=_prior(rng, kind, int(places[0])),
    )


def _later(kind: Kind) -> int:
    """Commits that came after the first night's."""
    return (kind.night - 1) * (kind.n - 1)


def _steps(kind: Kind, one: int, other: int) -> tuple[int, ...]:
    match kind.truth:
        case Truth.STEP:
            return (one,)
        case Truth.TWO | Truth.BACK:
            return (min(one, other), max(one, other))
        case Truth.RAMP:
            first = 1 + one % (kind.n - RAMP)
            return tuple(range(first, first + RAMP))
        case Truth.NONE | Truth.DRIFT:
            return ()


def _levels(kind: Kind, steps: tuple[int, ...], size: float) -> Floats:
    if kind.truth is Truth.DRIFT:
        return np.linspace(0.0, size, kind.n)
    levels = np.zeros(kind.n)
    for at, step in enumerate(steps):
        levels[step:] += _jump(kind, at, size)
    return levels


def _jump(kind: Kind, at: int, size: float) -> float:
    if kind.truth is Truth.RAMP:
        return size / RAMP
    if at and kind.truth is Truth.BACK:
        return -size if kind.then_pct is None else math.log1p(kind.then_pct / 100)
    return size


def _scatter(kind: Kind, seed: int, steps: tuple[int, ...]) -> Floats | None:
    if not kind.scatter_pct and not kind.odd_pct:
        return None
    scatter = np.random.default_rng([seed, SCATTER]).normal(0.0, kind.scatter_pct / 100, kind.n)
    if kind.odd_pct:
        near = {at for step in steps for at in (step - 1, step)}
        places = [at for at in range(1, kind.n - 1) if at not in near]
        odd = int(np.random.default_rng([seed, ODD]).choice(places))
        scatter[odd] += math.log1p(kind.odd_pct / 100)
    return np.asarray(scatter, dtype=np.float64)


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
