"""The load of a search that names none: the one of a suite that shows soonest what differs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dsbisect.cli.common_options import DEFAULT_METRIC
from dsbisect.commits.commit_range import Range
from dsbisect.commits.commits_question import Commits
from dsbisect.compare_study import SIDES
from dsbisect.comparison_question import Compare
from dsbisect.studies import Rows
from dsbisect.study_answers import StudyAnswer, answered
from dsbisect.study_lab import Scene, ThisMachine
from dsharness.model import Boundary, Workload
from dsresults.compare.compared_loads import ComparedLoad, ComparedLoads
from dsresults.number_text import counted

MARGIN_PCT = 10.0  # smaller differences of both ends are not looked for
MAX_RUNS = 40  # of both ends under one load
LEAST_WIDTH = 0.01  # of a log: no interval says more


@dataclass(frozen=True, kw_only=True)
class FoundLoad:
    """What a search of commits goes by."""

    workload: Workload
    metric: str
    why: str


def looks_for_load(study: Commits) -> bool:
    """Whether none is named, and both ends can be compared as the search would build them."""
    named = study.workload is not None or study.metric != DEFAULT_METRIC
    return not (named or study.fixes or study.edits or study.patches)


def ends_of_commits(study: Commits, scope: Range) -> Compare:
    """Return what is asked of both ends of a range."""
    first, second = study.ends
    if scope.repository.revision(first) != scope.good:  # they were swapped
        first, second = second, first
    return _of_ends(
        first,
        second,
        settings=study.settings,
        repository=study.repository,
        toolchain=study.toolchain,
    )


def ends_of_rows(study: Rows, scene: Scene) -> Compare:
    """Return what is asked of both ends of a series."""
    line = study.request(scene).lines[0]
    return _of_ends(line[0], line[-1], settings=study.settings)


def _of_ends(first: str, second: str, **words: str | None) -> Compare:
    known = {"first": first, "second": second, "margin": MARGIN_PCT, "max_runs": MAX_RUNS}
    return Compare.model_validate({**known, **words})


def compared_ends(comparison: Compare, lab: ThisMachine) -> StudyAnswer:
    """Return both ends under every load of the suite; of the same commits, as it was answered."""
    sources = comparison.made(lab.scene)  # HEAD may be another one than it was
    if sources is not None:
        sides = sources.sides.model_dump(mode="json")
        for finding in reversed(lab.store.findings("compare")):
            kept = StudyAnswer.of(finding)
            if kept.study == comparison and kept.record.looks.get(SIDES) == sides:
                return kept
    return answered(comparison, lab)


def found_load(compared: ComparedLoads, scene: Scene) -> FoundLoad | None:
    """Return what shows it most clearly per second of runs; what is slower comes before the rest.

    None where no load shows a difference.
    """
    shown = [
        (load, boundary)
        for load in compared.loads
        for boundary in (load.boundary, *load.also)
        if boundary is not None and boundary.found and boundary.effect
    ]
    if not shown:
        return None
    pairs = [pair for pair in shown if pair[1].direction == "slower"] or shown

    def per_second(pair: tuple[ComparedLoad, Boundary]) -> float:
        load, boundary = pair
        return _clarity(boundary) / (load.runs * scene.workload(load.workload_id).duration_s)

    load, boundary = max(pairs, key=per_second)
    others = len({pair[0].workload_id for pair in shown}) - 1
    also = f"; {counted(others, 'other load')} can tell too" if others else ""
    return FoundLoad(
        workload=scene.workload(load.workload_id),
        metric=boundary.metric,
        why=f"searching with {load.workload_id}, which shows soonest how both ends differ: "
        f"{boundary.summary} ({counted(load.runs, 'pair')} of runs){also}",
    )


def _clarity(boundary: Boundary) -> float:
    """Return how many times its own uncertainty a difference is, squared."""
    size = abs(math.log(boundary.effect or 1.0))
    low, high = boundary.effect_interval or (1.0, 1.0)
    width = max(LEAST_WIDTH, math.log(high / low) / 2) if low > 0 else size
    return (size / width) ** 2
