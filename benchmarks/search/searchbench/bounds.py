"""Bounds in practice, by searches that are told what no search can know.

The oracle is told both levels, the noise, and that there is a step.

The clairvoyant is the bound on proof: told the culprit, it runs only that and the one before, until
it is proved. As the search, it knows neither the noise nor the size, gives "no step" the same
chance before any run, and each place the same part of the rest. It takes builds of one source for
equal, and what is as noisy as it is for Gaussian: with unknown noise, its test is that of t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dssearch.bayes.prior import Belief
from dssearch.bayes.track import log_sum
from searchbench.findings import Finding, Said, step_at
from searchbench.machine import Machine
from searchbench.worlds import Floats, World

LEVEL = 0.95
MOST_BUILDS = 9
SURE = 0.9  # of a gap's mass, before its middle is built

Chooser = Callable[[Floats, set[int]], int | None]


def free(world: World, machine: Machine) -> Finding:
    """Builds cost nothing: the candidate that halves the mass, each time."""
    return _seek(world, machine, lambda masses, _: _halving(masses))


def frugal(world: World, machine: Machine) -> Finding:
    """At most nine builds: a middle is measured until it is sure."""
    return _seek(world, machine, _reluctant)


def _seek(world: World, machine: Machine, choose: Chooser) -> Finding:
    """Weighs, for each candidate, that it is the first of the upper level."""
    logs = np.zeros(world.n)
    logs[0] = -np.inf
    if world.prior is not None:
        logs[1:] = np.log(world.prior[1:])
    sigma = max(world.sigma, 1e-9)
    low, high = 0.0, world.size
    while True:
        masses = np.exp(logs - logs.max())
        masses /= masses.sum()
        if masses.max() >= LEVEL:
            return step_at(int(np.argmax(masses)))
        place = choose(masses, machine.built)
        if place is None:
            return step_at(int(np.argmax(masses)))
        value = machine.run(place)
        if value is None:
            raise ValueError(f"the oracle knows what builds, and {place} does not")
        logs[: place + 1] += ((value - low) ** 2 - (value - high) ** 2) / (2 * sigma**2)


def _halving(masses: Floats) -> int:
    return int(np.argmin(np.abs(np.cumsum(masses)[:-1] - 0.5)))


def _reluctant(masses: Floats, built: set[int]) -> int | None:
    """None when the builds are used up and the gap that is sure cannot be halved."""
    sums = np.cumsum(masses)
    places_built = sorted(built)
    edges = [0, *places_built, len(masses) - 1]
    shares = np.diff(sums[edges])
    gap = int(np.argmax(shares))
    low, high = edges[gap], edges[gap + 1]
    if not places_built or (shares[gap] >= SURE and high - low > 1):
        if len(places_built) == MOST_BUILDS:
            return None
        inner = sums[low:high] - sums[low]
        return low + max(1, int(np.argmin(np.abs(inner - shares[gap] / 2))))
    return min(places_built, key=lambda place: abs(float(sums[place]) - 0.5))


BELIEF = Belief()
NOISES = np.geomspace(0.002, 1.0, 60)  # each as likely as the next
POINTS = 60  # sizes of a step, on each side


def _sizes() -> Floats:
    """Noise, size: alike likely on a log scale, from the least that is looked for."""
    low = np.maximum(BELIEF.least_log, BELIEF.least_in_noise * NOISES)
    rises = np.geomspace(low, BELIEF.most_log, POINTS, axis=1)
    return np.concatenate([rises, -rises], axis=1)


SIZES = _sizes()
NONE: Floats = np.zeros((len(NOISES), 1))


def prove(world: World, machine: Machine) -> Finding:
    """In turns, one run of each side; in duets, both at once."""
    step = world.steps[0]
    if world.kind.duets:
        return _prove_in_duets(world, machine)
    proof = Proof(places=world.n - 1)
    while proof.chance < LEVEL:
        side, candidate = (
            (proof.after, step)
            if proof.before.count > proof.after.count
            else (proof.before, step - 1)
        )
        value = machine.run(candidate)
        if value is None:
            raise ValueError(f"candidate {candidate} must be buildable here")
        side.add(value)
    return Finding(said=Said.STEP, named=frozenset({step}), confidence=proof.chance)


def _prove_in_duets(world: World, machine: Machine) -> Finding:
    step, apart, chance = world.steps[0], Side(), 0.0
    while chance < LEVEL:
        before, after = (machine.measure(candidate, apart.count) for candidate in (step - 1, step))
        assert before is not None
        assert after is not None
        apart.add(after.cost - before.cost)
        chance = chance_of_pairs(apart, world.n - 1)
    return Finding(said=Said.STEP, named=frozenset({step}), confidence=chance)


@dataclass(kw_only=True)
class Side:
    """The runs of one candidate."""

    count: int = 0
    mean: float = 0.0
    square: float = 0.0  # sum of the squared distances from the mean

    def add(self, value: float) -> None:
        self.count += 1
        away = value - self.mean
        self.mean += away / self.count
        self.square += away * (value - self.mean)


@dataclass(kw_only=True)
class Proof:
    """That the step is between two neighbours, and not elsewhere or nowhere."""

    places: int
    before: Side = field(default_factory=Side)
    after: Side = field(default_factory=Side)

    @property
    def chance(self) -> float:
        if not (self.before.count and self.after.count):
            return 0.0
        return _chance(self._log_likelihood, self.places)

    def _log_likelihood(self, sizes: Floats) -> float:
        """The mean over every noise and size; the level is integrated out."""
        runs = self.before.count + self.after.count
        square = self.before.square + self.after.square
        spread = NOISES**2 * (1 / self.before.count + 1 / self.after.count)
        away = self.after.mean - self.before.mean - sizes
        fits = log_sum(-(away**2) / (2 * spread[:, None])) - math.log(sizes.shape[1])
        return float(log_sum(fits - (runs - 1) * np.log(NOISES) - square / (2 * NOISES**2)))


def chance_of_pairs(apart: Side, places: int) -> float:
    """The same of differences of two runs at once: the machine's speed is in neither."""

    def log_likelihood(sizes: Floats) -> float:
        square = 2 * NOISES**2
        spread = square / apart.count
        fits = log_sum(-((apart.mean - sizes) ** 2) / (2 * spread[:, None]))
        fits -= math.log(sizes.shape[1])
        penalty = (apart.count - 1) * np.log(NOISES) + np.log(spread) / 2
        return float(log_sum(fits - penalty - apart.square / (2 * square)))

    return _chance(log_likelihood, places)


def _chance(log_likelihood: Callable[[Floats], float], places: int) -> float:
    """That the step is at one of so many places."""
    share = (1 - BELIEF.none) / places
    odds = log_likelihood(SIZES) - log_likelihood(NONE) + math.log(share / (1 - share))
    return 1 / (1 + math.exp(min(700.0, -odds)))
