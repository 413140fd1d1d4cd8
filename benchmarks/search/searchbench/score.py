"""From plays to figures, each with its statistical error."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from searchbench.findings import Said
from searchbench.play import Play

BINS = (0.0, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0 + 1e-9)
CLAIMS = frozenset(Said) - {Said.UNDECIDED, Said.STOPPED}
ROOM = 0.5  # added to both counts, so that 100 % of a few worlds has an error too


@dataclass(frozen=True, kw_only=True)
class Score:
    """A cell and a search."""

    worlds: int
    right: float
    right_error: float
    fair: float  # right, or an honest "cannot tell"
    fair_error: float
    one: float  # one of the steps was named
    every: float  # all of them were
    runs: float
    runs_error: float
    builds: float
    most_builds: int
    said: dict[str, float]  # shares
    also: float  # candidates suspected of a second step
    step_ms: float | None


@dataclass(frozen=True, kw_only=True)
class Stated:
    """How sure a search said it was, and how often it was right."""

    plays: int
    stated: float
    true: float
    error: float


def score(plays: Sequence[Play]) -> Score:
    steps = sum(each.steps for each in plays)
    runs = [each.runs for each in plays]
    return Score(
        worlds=len(plays),
        right=fmean(each.right for each in plays),
        right_error=_error([each.right for each in plays]),
        fair=fmean(each.fair for each in plays),
        fair_error=_error([each.fair for each in plays]),
        every=fmean(each.every for each in plays),
        one=fmean(each.one for each in plays),
        runs=fmean(runs),
        runs_error=_spread(runs) / math.sqrt(len(runs)),
        builds=fmean(each.builds for each in plays),
        most_builds=max(each.builds for each in plays),
        said={str(said): fmean(each.said is said for each in plays) for said in Said},
        also=fmean(each.also for each in plays),
        step_ms=1000 * sum(each.seconds for each in plays) / steps if steps else None,
    )


def stated(
    plays: Iterable[Play], claims: frozenset[Said] = frozenset({Said.STEP})
) -> Stated | None:
    """Of the plays that name a step, or claim something else; None when none does."""
    return stated_of((each.confidence, each.true) for each in plays if each.said in claims)


def stated_of(claims: Iterable[tuple[float | None, bool | None]]) -> Stated | None:
    """Of stated chances and whether it was so; what has no chance claims nothing."""
    sure = [(confidence, bool(true)) for confidence, true in claims]
    known = [(confidence, true) for confidence, true in sure if confidence is not None]
    if not known:
        return None
    return Stated(
        plays=len(known),
        stated=fmean(confidence for confidence, _ in known),
        true=fmean(true for _, true in known),
        error=_error([true for _, true in known]),
    )


def calibration(plays: Sequence[Play]) -> list[tuple[float, float, Stated]]:
    """Bins of stated confidence that hold any play: from, to, and what was true."""
    made = []
    for low, high in pairwise(BINS):
        inside = [e for e in plays if e.confidence is not None and low <= e.confidence < high]
        found = stated(inside)
        if found is not None:
            made.append((low, min(1.0, high), found))
    return made


def coverage(held: Iterable[bool | None]) -> tuple[int, float, float] | None:
    """How often a set or an interval holds the truth: how many claims, the share, its error."""
    known = [each for each in held if each is not None]
    return (len(known), *share_of(known)) if known else None


def share_of(hits: Sequence[bool]) -> tuple[float, float]:
    """With its standard error."""
    return fmean(hits), _error(hits)


def _error(hits: Sequence[bool]) -> float:
    share = (sum(hits) + ROOM) / (len(hits) + 2 * ROOM)
    return math.sqrt(share * (1 - share) / len(hits))


def _spread(values: Sequence[float]) -> float:
    middle = fmean(values)
    return math.sqrt(fmean((value - middle) ** 2 for value in values))
