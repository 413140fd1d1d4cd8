"""The bound in practice: a search that is told both levels, the noise, and that there is a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.search.findings import Finding, step_at
from benchmarks.search.machine import Machine
from benchmarks.search.worlds import Floats, World

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
        at = choose(masses, machine.built)
        if at is None:
            return step_at(int(np.argmax(masses)))
        value = machine.run(at)
        if value is None:
            raise ValueError(f"the oracle knows what builds, and {at} does not")
        logs[: at + 1] += ((value - low) ** 2 - (value - high) ** 2) / (2 * sigma**2)


def _halving(masses: Floats) -> int:
    return int(np.argmin(np.abs(np.cumsum(masses)[:-1] - 0.5)))


def _reluctant(masses: Floats, built: set[int]) -> int | None:
    """None when the builds are used up and the gap that is sure cannot be halved."""
    sums = np.cumsum(masses)
    known = sorted(built)
    edges = [0, *known, len(masses) - 1]
    shares = np.diff(sums[edges])
    gap = int(np.argmax(shares))
    low, high = edges[gap], edges[gap + 1]
    if not known or (shares[gap] >= SURE and high - low > 1):
        if len(known) == MOST_BUILDS:
            return None
        inner = sums[low:high] - sums[low]
        return low + max(1, int(np.argmin(np.abs(inner - shares[gap] / 2))))
    return min(known, key=lambda at: abs(float(sums[at]) - 0.5))
