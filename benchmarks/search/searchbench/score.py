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
    steps = sum(play.steps for play in plays)
    runs = [play.runs for play in plays]
    return Score(
        worlds=len(plays),
        right=fmean(play.right for play in plays),
        right_error=_error([play.right for play in plays]),
        fair=fmean(play.fair for play in plays),
        fair_error=_error([play.fair for play in plays]),
        every=fmean(play.every for play in plays),
        one=fmean(play.one for play in plays),
        runs=fmean(runs),
        runs_error=_spread(runs) / math.sqrt(len(runs)),
        builds=fmean(play.builds for play in plays),
        most_builds=max(play.builds for play in plays),
        said={str(answer): fmean(play.said is answer for play in plays) for answer in Said},
        also=fmean(play.also for play in plays),
        step_ms=1000 * sum(play.seconds for play in plays) / steps if steps else None,
    )


def stated(
    plays: Iterable[Play], claims: frozenset[Said] = frozenset({Said.STEP})
) -> Stated | None:
    """Of the plays that name a step, or claim something else; None when none does."""
    return stated_of((play.confidence, play.true) for play in plays if play.said in claims)


def stated_of(claims: Iterable[tuple[float | None, bool | None]]) -> Stated | None:
    """Of stated chances and whether it was so; what has no chance claims nothing."""
    sure = [(confidence, bool(true)) for confidence, true in claims]
    claims_stated = [(confidence, true) for confidence, true in sure if confidence is not None]
    if not claims_stated:
        return None
    return Stated(
        plays=len(claims_stated),
        stated=fmean(confidence for confidence, _ in claims_stated),
        true=fmean(true for _, true in claims_stated),
        error=_error([true for _, true in claims_stated]),
    )


def calibration(plays: Sequence[Play]) -> list[tuple[float, float, Stated]]:
    """Bins of stated confidence that hold any play: from, to, and what was true."""
    bins = []
    for low, high in pairwise(BINS):
        inside = [
            play for play in plays if play.confidence is not None and low <= play.confidence < high
        ]
        claims = stated(inside)
        if claims is not None:
            bins.append((low, min(1.0, high), claims))
    return bins


def coverage(claims: Iterable[bool | None]) -> tuple[int, float, float] | None:
    """How often a set or an interval holds the truth: how many claims, the share, its error."""
    answers = [claim for claim in claims if claim is not None]
    return (len(answers), *share_of(answers)) if answers else None


def share_of(hits: Sequence[bool]) -> tuple[float, float]:
    """With its standard error."""
    return fmean(hits), _error(hits)


def _error(hits: Sequence[bool]) -> float:
    share = (sum(hits) + ROOM) / (len(hits) + 2 * ROOM)
    return math.sqrt(share * (1 - share) / len(hits))


def _spread(values: Sequence[float]) -> float:
    middle = fmean(values)
    return math.sqrt(fmean((value - middle) ** 2 for value in values))
