"""What a search said, and whether that is true."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from benchmarks.search.worlds import Truth, World


class Said(StrEnum):
    STEP = "step"
    NONE = "none"
    DRIFT = "drift"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """``named`` is one candidate, or all that could not be told from it."""

    said: Said
    named: frozenset[int] = field(default_factory=frozenset)
    also: frozenset[int] = field(default_factory=frozenset)  # suspected of another step
    suspects: frozenset[int] | None = None  # when undecided: where a step must be
    confidence: float | None = None


def step_at(*named: int) -> Finding:
    return Finding(said=Said.STEP, named=frozenset(named))


def right(world: World, finding: Finding) -> bool:
    """By the truth of the world, which no search is told."""
    match world.kind.truth:
        case Truth.NONE:
            return finding.said is Said.NONE
        case Truth.DRIFT:
            return finding.said is not Said.STEP
        case Truth.STEP:
            return names(world, finding, world.steps[0])
        case Truth.TWO | Truth.BACK:
            one, other = world.steps
            seen = finding.named | finding.also
            both = ((one, other), (other, one))
            return any(names(world, finding, this) and that in seen for this, that in both)


def names(world: World, finding: Finding, step: int) -> bool:
    """Whether this step is named as narrowly as measuring can."""
    if finding.said is not Said.STEP or not finding.named:
        return False
    return finding.named <= world.answer(step)


def names_one(world: World, finding: Finding) -> bool:
    return any(names(world, finding, step) for step in world.steps)


def covers(world: World, finding: Finding) -> bool | None:
    """Whether the step is among the suspects; None where nothing of the kind is claimed."""
    if world.kind.truth is not Truth.STEP:
        return None
    told = finding.suspects if finding.said is Said.UNDECIDED else finding.named
    return world.steps[0] in told if told else None
