"""Drives a search of this project in a world, as a campaign would."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, assert_never

from dsharness.model import Boundary
from dssearch.forecast import walk
from dssearch.question import Answer, Enough, History, Pending, Question, Search, Wanted
from searchbench.findings import Finding, Said
from searchbench.machine import Machine


@lru_cache(maxsize=8)
def line_of(n: int) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(n))


def place(name: str) -> int:
    return int(name[1:])


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A search whose thinking is timed."""

    looks: ClassVar[bool] = True
    search: Search
    step_s: list[float]

    def next_step(
        self, question: Question, history: History, pending: Pending = ()
    ) -> Wanted | Answer | Enough:
        before = time.perf_counter()
        step = self.search.next_step(question, history, pending)
        self.step_s.append(time.perf_counter() - before)
        return step


def drive(search: Search, machine: Machine, step_s: list[float]) -> Finding:
    """Adds the seconds that the search thought for each step to ``step_s``."""
    timed = Timed(search=search, step_s=step_s)
    line = line_of(machine.world.n)
    kind = machine.world.kind
    boundary, _ = walk(
        timed, line, lambda name, turn: machine.measure(place(name), turn), kind.metric
    )
    return read(boundary)


def read(boundary: Boundary) -> Finding:
    """A boundary in the words of the benchmark."""
    suspects, other_places = _places(boundary.suspects), _places(boundary.also)
    ranges = tuple(
        frozenset(range(place(step.before) + 1, place(step.after) + 1)) for step in boundary.steps
    )
    return Finding(
        said=_said(boundary),
        named=suspects if boundary.found else frozenset(),
        also=other_places.union(*ranges) - suspects,
        every=ranges,
        suspects=suspects,
        effect=_effect(boundary),
        counts=boundary.counts.difference_interval if boundary.counts else None,
        way={"slower": 1, "faster": -1}.get(boundary.direction, 0),
        confidence=boundary.confidence,
        visible=_log_of(boundary.smallest_visible_pct),
    )


def _log_of(pct: float | None) -> float | None:
    return None if pct is None else math.log1p(pct / 100)


def _said(boundary: Boundary) -> Said:
    if boundary.found:
        return Said.STEP
    if boundary.shape == "ramp":
        return Said.RAMP
    if boundary.direction != "none":
        return Said.UNDECIDED  # of shape "builds": because only further builds would tell
    match boundary.shape:
        case "ends":
            return Said.ENDS
        case "builds":
            return Said.BUILDS
        case None:
            return Said.NONE
    assert_never(boundary.shape)


def _effect(boundary: Boundary) -> tuple[float, float] | None:
    """Above 0 is slower."""
    if boundary.effect_interval is None or boundary.direction not in {"slower", "faster"}:
        return None
    low, high = (math.log(bound) for bound in boundary.effect_interval)
    return (low, high) if boundary.direction == "slower" else (-high, -low)


def _places(names: Iterable[str]) -> frozenset[int]:
    return frozenset(place(name) for name in names)
