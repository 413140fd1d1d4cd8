"""Peers that halve: plain bisection, a fixed number of runs each, and the rule of `asv find`."""

from __future__ import annotations

import math
from statistics import fmean

from benchmarks.search.findings import Finding, Said, step_at
from benchmarks.search.machine import Machine
from benchmarks.search.worlds import World

# Over d², as someone would choose who knew it: 95 % or more are right at n = 128.
RUNS_EACH = 40


def plain(world: World, machine: Machine) -> Finding:
    """One run each, against half-way between both ends."""
    return _halve(world.n, machine, 1)


def fixed(world: World, machine: Machine) -> Finding:
    """So many runs each that one decision is hardly ever wrong."""
    return _halve(world.n, machine, math.ceil(RUNS_EACH / world.d**2))


def asv_find(world: World, machine: Machine) -> Finding:
    """One sample each, kept; the half with the larger rise is searched."""
    known = {at: _value(machine, at, 1) for at in (0, world.n - 1)}
    low, high = 0, world.n - 1
    while high - low > 1:
        middle = (low + high) // 2
        known[middle] = _value(machine, middle, 1)
        if known[middle] - known[low] >= known[high] - known[middle]:
            high = middle
        else:
            low = middle
    return step_at(high)


def _halve(n: int, machine: Machine, runs: int) -> Finding:
    first, last = _value(machine, 0, runs), _value(machine, n - 1, runs)
    if first == last:
        return Finding(said=Said.NONE)
    threshold = (first + last) / 2
    low, high = 0, n - 1
    skipped: set[int] = set()
    while inner := _nearest(low, high, skipped):
        value = _tried(machine, inner, runs)
        if value is None:
            skipped.add(inner)
        elif (value > threshold) == (last > first):
            high = inner
        else:
            low = inner
    return step_at(*range(low + 1, high + 1))


def _nearest(low: int, high: int, skipped: set[int]) -> int:
    """The candidate nearest to the middle that may be built; 0 when none is left."""
    middle = (low + high) // 2
    left = (at for at in range(low + 1, high) if at not in skipped)
    return (
        min(left, key=lambda at: abs(at - middle), default=0)
        if skipped
        else (middle if low < middle < high else 0)
    )


def _value(machine: Machine, at: int, runs: int) -> float:
    value = _tried(machine, at, runs)
    if value is None:
        raise ValueError(f"candidate {at} must be buildable here")
    return value


def _tried(machine: Machine, at: int, runs: int) -> float | None:
    values = [machine.run(at) for _ in range(runs)]
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
