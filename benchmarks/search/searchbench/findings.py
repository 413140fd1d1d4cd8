"""What a search said."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Said(StrEnum):
    STEP = "step"
    NONE = "none"
    RAMP = "ramp"  # over a range of candidates
    ENDS = "ends alike"  # and nothing of what lies between them
    BUILDS = "within builds"  # no more than builds of one source differ by
    UNDECIDED = "cannot tell"
    STOPPED = "stopped"  # by the benchmark, after too many runs


@dataclass(frozen=True, kw_only=True)
class Finding:
    """``named`` is one candidate, or all that could not be told from it."""

    said: Said
    named: frozenset[int] = field(default_factory=frozenset)
    also: frozenset[int] = field(default_factory=frozenset)  # suspected of another step
    every: tuple[frozenset[int], ...] = ()  # where each step is that is said to be there
    suspects: frozenset[int] | None = None  # when undecided: where a step must be; a ramp's range
    effect: tuple[float, float] | None = None  # the interval of its log, above 0 is slower
    way: int = 0  # 1 where what is named is slower, -1 where it is faster
    counts: tuple[float, float] | None = None  # of a count: the interval of its difference
    confidence: float | None = None
    visible: float | None = None  # a log: the smallest step that could have been seen


def step_at(*places: int) -> Finding:
    return Finding(said=Said.STEP, named=frozenset(places))
