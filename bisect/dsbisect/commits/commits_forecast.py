"""What a search over commits will take, before anything is built. Core pure logic."""

from __future__ import annotations

import math

from pydantic import Field

from dsbisect.commits.commit_range import Range
from dsbisect.commits.commits_request import CommitsRequest, surroundings_of
from dsbisect.search_options import run_s
from dsharness.model import Value
from dsresults.commits_result import EqualCommits

# Measured on two cores with the commands in docs/builds.md; a figure to plan with, not a promise.
FIRST_BUILD_S = 210.0
NEXT_BUILD_S = 25.0
CLEAN_BUILD_S = 240.0
GOLDEN_S = 25.0
RUNS_EACH = 3  # of one candidate, when the difference is large; see `dsbisect plan`


class CommitsForecast(Value):
    """Candidates, builds, runs and hours, as far as they can be known."""

    good: str
    bad: str
    commits: int
    candidates: tuple[str, ...]
    subjects: dict[str, str]
    equal: tuple[EqualCommits, ...]
    builds: int = Field(description="at most, when every commit builds")
    clean_builds: int
    samples: int
    hours: float
    notes: tuple[str, ...] = ()


def forecast_of(ask: CommitsRequest, scope: Range) -> CommitsForecast:
    """A forecast for one large culprit on a line where every commit builds."""
    points = len(scope.points)
    steps = math.ceil(math.log2(max(1, *(len(line) - 1 for line in scope.lines))))
    clean = 2 if ask.proof else 0
    further = 2 if ask.proof else 0  # with and without the culprit
    builds = points + steps + further
    samples = RUNS_EACH * (points + steps + clean + 2 * further)
    seconds = (
        FIRST_BUILD_S
        + (builds - 1) * NEXT_BUILD_S
        + clean * CLEAN_BUILD_S
        + (builds + clean) * GOLDEN_S
        + samples * run_s(ask.workload, paired=False)
    )
    repository = scope.repository
    return CommitsForecast(
        good=scope.good,
        bad=scope.bad,
        commits=scope.commits,
        candidates=scope.candidates,
        subjects={name: repository.commit(scope.hashes[name]).subject for name in scope.candidates},
        equal=scope.equal,
        builds=builds,
        clean_builds=clean,
        samples=samples,
        hours=round(seconds / 3600, 2),
        notes=(*scope.notes, *_crossing(ask, scope)),
    )


def _crossing(ask: CommitsRequest, scope: Range) -> tuple[str, ...]:
    """A note about a range whose ends are of different eras."""
    ends = tuple(scope.trees[end] for end in scope.points)
    return surroundings_of(ask, ends).notes


def expected_text(forecast: CommitsForecast) -> str:
    """The forecast for a screen; the first line has the totals."""
    merged = {each.candidate: each for each in forecast.equal}
    head = (
        f"{forecast.commits} commits, {len(forecast.candidates)} candidates: about "
        f"{forecast.builds} builds, {forecast.clean_builds} clean ones, "
        f"{forecast.samples} samples, {forecast.hours:.1f} hours"
    )
    lines = [head]
    for name in forecast.candidates:
        lines.append(f"  {name} {forecast.subjects[name]}")
        if name in merged:
            equal = merged[name]
            kinds = ", ".join(equal.kinds) or "nothing"
            lines.append(f"    and {len(equal.commits) - 1} equal to it ({kinds} only)")
    return "\n".join([*lines, *(f"note: {note}" for note in forecast.notes)])
