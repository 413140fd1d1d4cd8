"""One world, one search: what it said and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.search.findings import Finding, Said, covers, names_one, right
from benchmarks.search.machine import Machine, Spent
from benchmarks.search.methods import METHODS, Stopwatch
from benchmarks.search.worlds import Kind, draw


@dataclass(frozen=True, kw_only=True)
class Play:
    """Small, since a pool sends thousands of them back."""

    seed: int
    said: Said
    right: bool
    one: bool  # one of the steps is named
    covers: bool | None  # the step is among the suspects
    named: int  # so many candidates
    also: int
    confidence: float | None
    runs: int
    builds: int
    steps: int
    seconds: float  # of thought


def play(method: str, kind: Kind, seed: int) -> Play:
    world = draw(kind, seed)
    machine, watch = Machine(world), Stopwatch()
    try:
        finding = METHODS[method](world, machine, watch)
    except Spent:
        finding = Finding(said=Said.UNDECIDED)
    return Play(
        seed=seed,
        said=finding.said,
        right=right(world, finding),
        one=names_one(world, finding),
        covers=covers(world, finding),
        named=len(finding.named),
        also=len(finding.also),
        confidence=finding.confidence,
        runs=machine.runs,
        builds=machine.builds,
        steps=len(watch.step_s),
        seconds=sum(watch.step_s),
    )
