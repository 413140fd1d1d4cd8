"""The model of docs/search.md as direct sums over levels: slow, and written twice."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from worlds import sample_of

from dssearch.bayes import lattice
from dssearch.bayes.belief import Beliefs, Tracks, believe
from dssearch.bayes.evidence import Evidence
from dssearch.bayes.lattice import noise_estimate, noises_around
from dssearch.bayes.likelihood import LONG as LONG_LINE
from dssearch.bayes.noise_shapes import REACH, slow_mode
from dssearch.bayes.posterior import Posterior
from dssearch.bayes.prior import Belief, scatters
from dssearch.question import History, Question

NAMES = tuple("abcd")
LONG = tuple("abcdefghi")
NOISE = 0.03
PLAIN = Belief(two=0.0, ramp=0.0)
STEPS = Belief(ramp=0.0)
# few ways: a sum over levels, rises and ways is long; many odd ones, of which a ramp knows nothing
RAMPS = Belief(two=0.0, odd=0.05, scatters=scatters((0.002, 0.5), (0.02, 0.5)), tails=(100.0,))
FINE = 0.12  # of the noise: cells of the slow sums
FAR = 7.0  # times the noise and what builds differ by, on both sides of what was measured
NEAR = 0.015  # of a chance: what the two ways may differ by


def history(costs: Mapping[str, float], runs: int, seed: int, slower: float = 0.0) -> History:
    """With noise; ``slower``: a third of the runs is so much slower."""
    chance = np.random.default_rng(seed)

    def cost(middle: float) -> float:
        late = slower * (chance.random() < 1 / 3) if slower else 0.0
        return float(np.exp(middle + NOISE * chance.normal() + late))

    samples = {
        name: tuple(sample_of(name, cost(middle), len(costs) * run + at) for run in range(runs))
        for at, (name, middle) in enumerate(costs.items())
    }
    return History(samples=samples)


def believed(known: History, belief: Belief, names: Sequence[str] = NAMES, *failed: str) -> Beliefs:
    names = tuple(names)
    question = Question(series_id="s", line=names, workload_id="w", settings_id="default")
    found = believe(question, known, Tracks().of(names), belief, dict.fromkeys(failed, "fails"))
    assert found is not None
    return found


def finer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lattice so fine that only the formulas are left to differ."""
    for name in ("FINENESS", "REACH", "COARSE", "MOST"):
        monkeypatch.setattr(lattice, name, 4 * getattr(lattice, name))


def modes(
    distance: np.ndarray, way: Sequence[float], scale: float | np.ndarray = 1.0
) -> np.ndarray:
    """(4): size, tail, share and delay of the slow mode."""
    size, tail, share, late = way
    fast = student.pdf(distance / (size * scale), tail) / (size * scale)
    if share == 0:
        return fast
    return (1 - share) * fast + share * modes(distance - late, (size, tail, 0.0, 0.0), scale)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Direct sums over levels, for each way of being noisy."""

    levels: np.ndarray
    apart: np.ndarray  # between any two levels
    tables: np.ndarray  # way, candidate, level: (6)
    weights: np.ndarray  # of each way, in advance
    scatters: np.ndarray  # of each way: (3)
    squares: np.ndarray  # of each way: the variance of a run, as far as it hides a level
    steps: Mapping[float, np.ndarray]  # by scatter: (11) from each level to the cell of another

    def led(self, before: np.ndarray, below: float = math.inf) -> np.ndarray:
        """Where a step, smaller than that, leads from what was before; way, level."""
        found, cell = np.empty_like(before), self.levels[1] - self.levels[0]
        small = np.clip((below - self.apart) / cell + 0.5, 0, 1)
        for scatter, density in self.steps.items():
            ways = self.scatters == scatter
            found[ways] = before[ways] @ (density * small)
        return found

    def parts(self, gaps: Sequence[int]) -> list[np.ndarray]:
        """Way, level: of all candidates before a step in the first of the gaps, and so on."""
        cuts = [gap + 1 for gap in gaps]
        return [part.prod(1) for part in np.split(self.tables, cuts, axis=1)]

    def along(self, gaps: Sequence[int], below: float = math.inf) -> np.ndarray:
        """(7), (8), (9): for each way, with steps in these gaps."""
        found, *rest = self.parts(gaps)
        for part in rest:
            found = self.led(found, below) * part
        return self.weights * found.sum(1)

    def on(self, gaps: Sequence[int], part: int) -> np.ndarray:
        """Way, level: how likely that part between the steps is to lie there."""
        parts = self.parts(gaps)
        found, after = parts[0], np.ones_like(parts[0])
        for each in parts[1 : part + 1]:
            found = self.led(found) * each
        for each in parts[:part:-1]:
            after = self.led(after * each)
        return self.weights[:, None] * found * after


@functools.cache
def hiding(tail: float) -> float:
    """The variance of a Gaussian that tells as much of a level: by Fisher's information."""
    at = np.linspace(-60, 60, 12001)
    slope = np.gradient(student.logpdf(at, tail), at)
    return 1 / float(np.trapezoid(slope**2 * student.pdf(at, tail), at))


def sums(seen: Evidence, belief: Belief) -> Sums:
    noise = noise_estimate(seen, belief)
    found = zip(*noises_around(noise, belief, seen), strict=True)
    ways = [(math.exp(log), (size, tail, 0.0, 0.0)) for size, log in found for tail in belief.tails]
    slow = slow_mode(seen, belief)
    if slow is not None:
        noise = slow.size if len(slow.levels) > 1 else noise
        total, made = sum(weight for weight, _ in ways), slow.ways()
        rows = list(zip(made.sizes, made.tails, made.slow, made.jump, strict=True))
        ways = [(weight / total, way) for weight, way in ways]
        ways += [(slow.prior / len(rows) * math.exp(-slow.unusual), row) for row in rows]
    cell, reach = FINE * noise, FAR * math.hypot(noise, 0.01)
    levels = np.arange(seen.values.min() - reach, seen.values.max() + reach, cell)
    apart = np.abs(np.subtract.outer(levels, levels))
    runs = np.ones((len(ways), len(seen.positions), len(levels)))
    for at, (_, way) in enumerate(ways):
        each = modes(seen.values[:, None] - levels, way, seen.scales[:, None])
        for owner, likely in zip(seen.owner, each, strict=True):
            runs[at, owner] *= likely
    odd = np.zeros((len(seen.positions), 1))
    odd[1:-1] = belief.odd if seen.positions[-1] - seen.positions[0] >= LONG_LINE else 0.0
    steps, tables = {}, []
    for builds in belief.scatters:
        scatter = builds.size
        low = max(belief.least_step(noise), belief.least_in_scatter * scatter)
        # of the cell that the smallest step cuts, only the part above it
        inside = cell * np.clip((apart - low) / cell + 0.5, 0, 1)
        steps[scatter] = inside / np.maximum(apart, low) / (2 * math.log(belief.most_log / low))
        own = norm.pdf(apart, scale=scatter)
        if builds.layouts:  # near one of two levels
            own = norm.pdf(apart, loc=scatter, scale=builds.width)
        own /= own.sum(1, keepdims=True)
        tables.append((1 - odd) * (runs @ own) + odd * (runs @ steps[scatter]))
    squares = [
        size**2 * hiding(tail) + share * (1 - share) * min(late, REACH * size) ** 2
        for _, (size, tail, share, late) in ways
    ]
    return Sums(
        levels=levels,
        apart=apart,
        tables=np.concatenate(tables),
        weights=np.array([builds.chance * way for builds in belief.scatters for way, _ in ways]),
        scatters=np.repeat([builds.size for builds in belief.scatters], len(ways)),
        squares=np.tile(squares, len(belief.scatters)),
        steps=steps,
    )


def gaps_of(positions: np.ndarray) -> list[int]:
    """The gap of each place where a step may be."""
    return (np.searchsorted(positions, range(1, positions[-1] + 1)) - 1).tolist()


def places(positions: np.ndarray, belief: Belief) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Each history's prior with the places of its steps; two in one gap are as one."""
    gaps, count = gaps_of(positions), int(positions[-1])
    yield belief.none, ()
    for place in range(1, count + 1):
        yield belief.one / count, (place,)
    pairs = list(itertools.combinations(range(1, count + 1), 2))
    for pair in pairs:
        share = belief.two / len(pairs)
        if gaps[pair[0] - 1] != gaps[pair[1] - 1]:
            yield share, pair
        else:
            yield from ((share / 2, (place,)) for place in pair)


def by_gaps(positions: np.ndarray, belief: Belief) -> dict[tuple[int, ...], float]:
    gaps, found = gaps_of(positions), Counter[tuple[int, ...]]()
    for prior, steps in places(positions, belief):
        found[tuple(gaps[place - 1] for place in steps)] += prior
    return {steps: prior for steps, prior in found.items() if prior > 0}


def of_gaps(found: Posterior) -> dict[tuple[int, ...], float]:
    """The same of the code's posterior."""
    alone = found.one + np.diag(found.two)
    pairs = itertools.combinations(range(found.gaps), 2)
    return {
        (): found.none,
        **{(gap,): float(chance) for gap, chance in enumerate(alone)},
        **{pair: float(found.two[pair]) for pair in pairs},
    }


def weighed(slow: Sums, positions: np.ndarray, belief: Belief) -> dict[tuple[int, ...], np.ndarray]:
    """Of each history with steps in these gaps: its likelihood with each way."""
    priors = by_gaps(positions, belief)
    return {steps: prior * slow.along(steps) for steps, prior in priors.items()}
