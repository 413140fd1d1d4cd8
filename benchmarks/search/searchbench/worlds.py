"""Simulated histories of which the truth is known exactly. A world is a value of kind and seed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from dsbisect.commits.load_prior import weighed_by_functions
from searchbench.kinds import RAMP, Hint, Kind, Truth

Floats = NDArray[np.float64]

LIKELY, UNLIKELY = 3.0, 0.5  # the weights that `commits` gives to hot paths and to all others
SUSPECTS = 5  # candidates that change what takes another time
STRETCHES = 3
# streams of chance of one seed; the machine has others
DRAWN, SCATTER, ODD, WAY, LAYOUT, STARTS, FLAKY, LIMIT, NEAR = 0, 3, 5, 7, 8, 9, 10, 11, 12
FLAKY_SHARE = 1 / 3  # of the candidates, where runs fail at random
NO_COUNT = 1e-6  # instead of 0, which has no log
NEXT_BUILD = 10**15  # between the seeds of one history's builds: other noise
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
    start: float = 0.0  # by which some starts of a server are slower
    fails: Floats | None = field(default=None)  # the share of each candidate's runs
    limit: float | None = None  # a run that costs more takes too long, and fails

    @property
    def n(self) -> int:
        return len(self.levels)

    def rebuilt(self, build: int) -> World:
        """The same sources, built once more: other builds of them, and other runs."""
        scatter = _scatter(self.kind, self.seed, self.steps, self.levels, build)
        return replace(self, scatter=scatter, seed=self.seed + build * NEXT_BUILD)

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

    def built(self, candidate: int) -> float:
        """The level of a candidate's build."""
        return float(self.levels[candidate]) + (
            0.0 if self.scatter is None else float(self.scatter[candidate])
        )

    def jump(self, step: int) -> float:
        return float(self.levels[step] - self.levels[step - 1])

    def answer(self, step: int) -> frozenset[int]:
        """The fewest candidates to which measuring can narrow this step down."""
        return self._around(step, self.broken)

    def widest(self, step: int) -> frozenset[int]:
        """The same where nothing was learned of candidates that fail often."""
        if self.fails is None:
            return self.answer(step)
        return self._around(step, self.broken | frozenset(np.flatnonzero(self.fails).tolist()))

    def _around(self, step: int, unknown: frozenset[int]) -> frozenset[int]:
        low, high = step - 1, step
        while low in unknown and low > 0:
            low -= 1
        while high in unknown and high < self.n - 1:
            high += 1
        return frozenset(range(low + 1, high + 1))

    def hidden(self, *, inside: bool) -> float:
        """The largest difference that "no difference" denies: of the ends, or of any neighbours.

        Of a step in one of two layouts it is what a build of either has in the mean.
        """
        part = 0.5 if self.kind.one_layout else 1.0
        if inside and self.steps:
            return part * max(abs(self.jump(step)) for step in self.steps)
        return part * abs(float(self.levels[-1] - self.levels[0]))


def step_size(kind: Kind, sigma: float) -> float:
    if kind.counts is not None:
        before, after = (math.log(max(NO_COUNT, count)) for count in kind.counts)
        return after - before
    return kind.d * sigma if kind.step_pct is None else math.log1p(kind.step_pct / 100)


def draw(kind: Kind, seed: int) -> World:
    """Worlds of one seed share their noise and, for equal n, their places."""
    rng = np.random.default_rng([seed, DRAWN])
    quiet, loud = (math.log(pct / 100) for pct in kind.cv_pct)
    sigma = math.exp(rng.uniform(quiet, loud))
    phase = rng.uniform(0.0, 2 * math.pi)
    places = rng.choice(kind.n - 1, size=2, replace=False) + 1
    steps = _steps(kind, int(places[0]), int(places[1]), _drawn(seed, NEAR, (0.0, 1.0)))
    levels = _way(kind, seed) * _levels(kind, steps, step_size(kind, sigma))
    broken = _broken(rng, kind.n, int(places[0])) if kind.gaps else frozenset[int]()
    return World(
        kind=kind,
        seed=seed + (kind.night - 1) * NEXT_NIGHT,
        sigma=sigma,
        levels=np.pad(levels, (0, _later(kind)), mode="edge"),
        steps=steps,
        broken=broken,
        phase=phase,
        scatter=_scatter(kind, seed, steps, levels),
        start=math.log1p(_drawn(seed, STARTS, kind.start_pct) / 100),
        fails=_fails(kind, seed),
        limit=_limit(kind, seed, float(levels.max()), sigma),
        prior=_prior(rng, kind, int(places[0])),
    )


def _later(kind: Kind) -> int:
    """Commits that came after the first night's."""
    return (kind.night - 1) * (kind.n - 1)


def _drawn(seed: int, stream: int, between: tuple[float, float]) -> float:
    """A value of the whole world."""
    return float(np.random.default_rng([seed, stream]).uniform(*between))


def _way(kind: Kind, seed: int) -> float:
    return -1.0 if kind.either_way and _drawn(seed, WAY, (0.0, 1.0)) < 0.5 else 1.0


def _fails(kind: Kind, seed: int) -> Floats | None:
    if not kind.fails_pct[1]:
        return None
    rng = np.random.default_rng([seed, FLAKY])
    share = rng.uniform(*kind.fails_pct) / 100
    return np.where(rng.random(kind.n) < FLAKY_SHARE, share, 0.0)


def _limit(kind: Kind, seed: int, slow: float, sigma: float) -> float | None:
    """The share of the slow side's runs that it ends is what ``kind`` says, of Gaussian noise."""
    if not kind.censored_pct[1]:
        return None
    share = _drawn(seed, LIMIT, kind.censored_pct) / 100
    return slow + sigma * float(ndtri(1 - share))


def _steps(kind: Kind, first_chance: int, second_chance: int, near: float) -> tuple[int, ...]:
    if kind.apart is not None:
        low, high = kind.apart
        later = low + int(near * (high - low + 1))
        first = 1 + first_chance % (kind.n - 1 - later)
        return (first, first + later)
    match kind.truth:
        case Truth.STEP:
            return (first_chance,)
        case Truth.TWO | Truth.BACK:
            return (min(first_chance, second_chance), max(first_chance, second_chance))
        case Truth.RAMP:
            first = 1 + first_chance % (kind.n - RAMP)
            return tuple(range(first, first + RAMP))
        case Truth.NONE | Truth.DRIFT:
            return ()


def _levels(kind: Kind, steps: tuple[int, ...], size: float) -> Floats:
    if kind.truth is Truth.DRIFT:
        return np.linspace(0.0, size, kind.n)
    levels = np.zeros(kind.n)
    for number, step in enumerate(steps):
        levels[step:] += _jump(kind, number, size)
    return levels


def _jump(kind: Kind, number: int, size: float) -> float:
    if kind.truth is Truth.RAMP:
        return size / RAMP
    if number and kind.then_share is not None:
        return -kind.then_share * size
    if number and kind.truth is Truth.BACK:
        return -size if kind.then_pct is None else math.log1p(kind.then_pct / 100)
    return size


def _scatter(
    kind: Kind, seed: int, steps: tuple[int, ...], levels: Floats, *build: int
) -> Floats | None:
    layouts = kind.layout_pct[1] > 0 or kind.one_layout
    if not kind.scatter_pct and not kind.odd_pct and not layouts:
        return None
    chance = np.random.default_rng([seed, SCATTER, *build])
    scatter = chance.normal(0.0, kind.scatter_pct / 100, kind.n)
    if kind.odd_pct:
        near = {candidate for step in steps for candidate in (step - 1, step)}
        places = [candidate for candidate in range(1, kind.n - 1) if candidate not in near]
        odd = int(np.random.default_rng([seed, ODD]).choice(places))
        scatter[odd] += math.log1p(kind.odd_pct / 100)
    if layouts:
        scatter += _layouts(kind, seed, levels, *build)
    return np.asarray(scatter, dtype=np.float64)


def _layouts(kind: Kind, seed: int, levels: Floats, *build: int) -> Floats:
    """Each build has one of two, by chance."""
    rng = np.random.default_rng([seed, LAYOUT])
    apart = math.log1p(rng.uniform(*kind.layout_pct) / 100)
    if build:
        rng = np.random.default_rng([seed, LAYOUT, *build])
    second = rng.random(kind.n) < 0.5
    added = np.where(second, apart, -apart)
    if kind.one_layout:
        added -= np.where(second, 0.0, levels - levels[0])
    return added


def _broken(rng: Generator, n: int, step: int) -> frozenset[int]:
    """Some stretches; half of the worlds have one over the step. Both ends can be built."""
    longest = max(1, n // 16)
    broken: set[int] = set()
    for number in range(STRETCHES):
        length = int(rng.integers(1, longest + 1))
        start = int(rng.integers(1, n))
        if number == 0 and rng.random() < 0.5:
            start = step - int(rng.integers(0, length + 1))
        broken.update(range(start, start + length))
    return frozenset(candidate for candidate in broken if 0 < candidate < n - 1)


def _prior(rng: Generator, kind: Kind, step: int) -> Floats | None:
    """A quarter of the candidates look suspicious; the culprit among them, or not.

    By functions it is a few, of which the lab says more.
    """
    if kind.hint is Hint.NOTHING:
        return None
    if kind.hint in {Hint.RUN, Hint.NOT_RUN}:
        others = [place for place in range(1, kind.n) if place != step]
        suspects = rng.choice(others, size=SUSPECTS, replace=False).tolist()
        if kind.hint is Hint.RUN:
            suspects[0] = step
        hot = {str(place): float(rng.uniform(1, 10)) for place in suspects}
        alike = dict.fromkeys(map(str, range(kind.n)), 1.0)
        weights = weighed_by_functions(alike, {name: {name} for name in hot}, hot)
        return np.array(list(weights.values()))
    prior = np.where(rng.random(kind.n) < 0.25, LIKELY, UNLIKELY)
    prior[step] = LIKELY if kind.hint is Hint.RIGHT else UNLIKELY
    return prior
