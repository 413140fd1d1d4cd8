"""One world, one search: what it said and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.search.findings import Finding, Said
from benchmarks.search.judgement import (
    covers,
    effect_holds,
    fair,
    hidden_holds,
    names_every,
    names_one,
    none_holds,
    right,
)
from benchmarks.search.kinds import Kind
from benchmarks.search.machine import MOST_RUNS, Machine, Spent
from benchmarks.search.methods import METHODS, Stopwatch
from benchmarks.search.worlds import draw


@dataclass(frozen=True, kw_only=True)
class Play:
    """Small, since a pool sends thousands of them back."""

    seed: int
    said: Said
    right: bool
    fair: bool  # right, or an honest "cannot tell"
    one: bool  # one of the steps is named
    every: bool  # all of them are
    covers: bool | None  # the step is among the suspects
    effect_holds: bool | None  # its size is in the interval
    none_holds: bool | None  # "no difference" is true, or what it hides is as small as it says
    hidden_holds: bool | None = (
        None  # of a step that "no difference" hides: it is as small as it says
    )
    named: int  # so many candidates
    also: int
    confidence: float | None
    runs: int
    builds: int
    steps: int
    seconds: float  # of thought

    @property
    def true(self) -> bool:
        """What the stated confidence is about: of two steps, it is one that is named."""
        return self.right or self.one


def play(method: str, kind: Kind, seed: int, most_runs: int = MOST_RUNS) -> Play:
    world = draw(kind, seed)
    machine, watch = Machine(world, most_runs), Stopwatch()
    try:
        finding = METHODS[method](world, machine, watch)
    except Spent:
        finding = Finding(said=Said.STOPPED)
    return Play(
        seed=seed,
        said=finding.said,
        right=right(world, finding),
        fair=fair(world, finding),
        one=names_one(world, finding),
        every=names_every(world, finding),
        covers=covers(world, finding),
        effect_holds=effect_holds(world, finding),
        none_holds=none_holds(world, finding),
        hidden_holds=hidden_holds(world, finding),
        named=len(finding.named),
        also=len(finding.also),
        confidence=finding.confidence,
        runs=machine.runs,
        builds=machine.builds,
        steps=len(watch.step_s),
        seconds=sum(watch.step_s),
    )
