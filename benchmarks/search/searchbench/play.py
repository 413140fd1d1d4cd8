"""One world, one search: what it said and what it cost.

Whether what it said is true is judged by the truth of the world, which no search is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from dsharness.model import DECIDER
from searchbench.findings import Finding, Said
from searchbench.kinds import Kind, Truth
from searchbench.machine import MOST_RUNS, Machine, Spent
from searchbench.methods import METHODS, Stopwatch
from searchbench.simulated_proof import proved
from searchbench.worlds import World, draw

MOST = 0.5  # of a ramp must be in the range that is named, and of that range in the ramp
NOTHING_NAMED = frozenset({Said.NONE, Said.ENDS, Said.BUILDS})
ROUNDING = 1e-9


class Wrong(StrEnum):
    """What is wrong with an answer."""

    NO = ""
    MADE_UP = "a step where there is none"
    PLACE = "another candidate"
    WAY = "faster for slower"
    NONE = "none where there is more"
    RAMP = "a ramp where there is none"


def right(world: World, finding: Finding) -> bool:
    match world.kind.truth:
        case Truth.NONE:
            return finding.said in NOTHING_NAMED
        case Truth.DRIFT:
            return finding.said is not Said.STEP
        case Truth.STEP:
            return names(world, finding, world.steps[0])
        case Truth.TWO:
            first, second = world.steps
            suspects = finding.named | finding.also
            orders = ((first, second), (second, first))
            return any(
                names(world, finding, step) and partner in suspects for step, partner in orders
            )
        case Truth.BACK:
            return finding.said is Said.ENDS or names_one(world, finding)
        case Truth.RAMP:
            return _spans(world, finding)


def fair(world: World, finding: Finding) -> bool:
    """Right, or an honest "cannot tell": one that does not exclude where a step is."""
    honest = finding.said is Said.UNDECIDED and covers(world, finding) is not False
    return honest or right(world, finding)


def names(world: World, finding: Finding, step: int) -> bool:
    """Whether this step is named as narrowly as measuring can."""
    if finding.said is not Said.STEP or not finding.named or world.kind.truth is Truth.RAMP:
        return False
    if world.kind.apart is not None and finding.named <= _between(world):
        return True  # next to each other: no run may be able to tell which
    if step in finding.named:
        return finding.named <= world.widest(step)
    return finding.named <= world.answer(step)


def _between(world: World) -> frozenset[int]:
    return frozenset(range(world.steps[0], world.steps[-1] + 1))


def holds(world: World, finding: Finding, step: int) -> bool:
    """Whether it is this step that is named, or one of few that are named together."""
    if world.kind.truth is Truth.RAMP:
        return False
    return step in finding.named or names(world, finding, step)


def names_one(world: World, finding: Finding) -> bool:
    return any(names(world, finding, step) for step in world.steps)


def names_every(world: World, finding: Finding) -> bool:
    """Each step as narrowly as measuring can, and nothing else."""
    if finding.said is not Said.STEP or len(finding.every) != len(world.steps):
        return False
    return all(
        any(narrowed <= world.answer(step) for narrowed in finding.every) for step in world.steps
    )


def covers(world: World, finding: Finding) -> bool | None:
    """Whether the suspects hold a step, or most of a ramp; None where nothing is claimed."""
    claimed = _told(finding)
    if not claimed or not world.steps:
        return None
    steps_held = len(claimed.intersection(world.steps))
    return (
        steps_held >= MOST * len(world.steps) if world.kind.truth is Truth.RAMP else steps_held > 0
    )


def effect_holds(world: World, finding: Finding) -> bool | None:
    """Whether the interval holds the size of the step that is rightly named."""
    steps_named = [step for step in world.steps if holds(world, finding, step)]
    if not steps_named or finding.effect is None or world.kind.one_layout:
        return None
    if finding.counts is not None and world.kind.counts is not None:
        before, after = world.kind.counts
        return finding.counts[0] <= after - before <= finding.counts[1]
    low, high = finding.effect
    return any(low <= size <= high for size in _sizes(world, steps_named))


def _sizes(world: World, steps_named: Sequence[int]) -> list[float]:
    """Of each step; of two next to each other, what they come to is one as well."""
    sizes = [world.jump(step) for step in steps_named]
    return sizes if world.kind.apart is None else [*sizes, sum(sizes)]


def none_holds(world: World, finding: Finding) -> bool | None:
    """Whether "no difference" hides no larger step than it says; None if not said."""
    if finding.said not in NOTHING_NAMED:
        return None
    return world.hidden(inside=finding.said is Said.NONE) <= (finding.visible or 0.0) + ROUNDING


def wrong(world: World, finding: Finding) -> Wrong:
    """What is wrong with an answer; what cannot tell is never wrong."""
    truth = world.kind.truth
    if finding.said in NOTHING_NAMED:
        return Wrong.NO if none_holds(world, finding) else Wrong.NONE
    if finding.said is Said.RAMP:
        return Wrong.NO if truth is Truth.DRIFT or _spans(world, finding) else Wrong.RAMP
    if finding.said is not Said.STEP:
        return Wrong.NO
    if not world.steps:
        return Wrong.MADE_UP
    steps_named = [step for step in world.steps if holds(world, finding, step)]
    if not steps_named:
        return Wrong.PLACE
    way = not finding.way or any(size * finding.way > 0 for size in _sizes(world, steps_named))
    return Wrong.NO if way else Wrong.WAY


def _spans(world: World, finding: Finding) -> bool:
    """One candidate is never a ramp."""
    claimed = _told(finding)
    if finding.said is Said.UNDECIDED or len(claimed) < 2:
        return False
    steps_held = len(claimed.intersection(world.steps))
    return steps_held >= MOST * max(len(claimed), len(world.steps))


def _told(finding: Finding) -> frozenset[int]:
    return finding.named or finding.suspects or frozenset()


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
    named: int  # so many candidates
    also: int
    confidence: float | None
    runs: int
    builds: int
    steps: int
    seconds: float  # of thought
    wrong: Wrong = Wrong.NO
    has_step: bool = True

    @property
    def undecided(self) -> bool:
        return self.said in {Said.UNDECIDED, Said.STOPPED}

    @property
    def true(self) -> bool:
        """What the stated confidence is about: of two steps, it is one that is named."""
        return self.right or self.one


def play(method: str, kind: Kind, seed: int, most_runs: int = MOST_RUNS) -> Play:
    world = draw(kind, seed)
    machine, watch = Machine(world, most_runs), Stopwatch()
    try:
        finding = METHODS[method](world, machine, watch)
        if kind.proved and kind.metric == DECIDER:
            finding = proved(finding, world)
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
        named=len(finding.named),
        also=len(finding.also),
        confidence=finding.confidence,
        runs=machine.runs,
        builds=machine.builds,
        steps=len(watch.step_s),
        seconds=sum(watch.step_s),
        wrong=wrong(world, finding),
        has_step=bool(world.steps),
    )
