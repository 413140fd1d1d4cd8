"""Nights of a standing watch: how often a quiet one is an alarm, and which one names a step.

A night is the search that `watch` asks: a day's commits, the reference first and the tip last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from searchbench.cell import FEWER_RUNS, Cell
from searchbench.findings import Said
from searchbench.kinds import Kind, Truth
from searchbench.markdown import rows
from searchbench.methods import OURS_SMALLEST
from searchbench.play import Play
from searchbench.plays import Job, Plays

NIGHTS, PLANTED = 500, 67  # of each kind: 2,000 quiet ones, 201 with a step
CONTROL = 100  # nights of each kind without a reference
LAST_NIGHT = 7  # on which a step is looked for
SERIES, DAYS = 12, 30
DAY = Kind(n=12, cv_pct=(2.0, 6.0))
QUIET = {
    "quiet": replace(DAY, truth=Truth.NONE),
    "quiet, a steady drift": replace(DAY, truth=Truth.NONE, drifts=True),
    "quiet, a new day every 30 runs": replace(DAY, truth=Truth.NONE, sessions=True),
    "quiet, neighbours steal": replace(DAY, truth=Truth.NONE, stolen=True),
}
STORED = {
    f"{name}, reference of the night before": replace(QUIET[name], stored=True)
    for name in ("quiet, a steady drift", "quiet, a new day every 30 runs")
}
STEPS = {f"a step of {pct:g} %": replace(DAY, step_pct=pct) for pct in (6.0, 12.0, 30.0)}
NEVER, OTHER = f"not in {LAST_NIGHT}", "another commit"
Look = Callable[[Sequence[Job]], Iterable[tuple[Job, list[Play]]]]
HEAD = ("nights", "number", "alarms", "of 12 series a month", "missed", "runs")


def night_cells() -> tuple[Cell, ...]:
    """All of them by the search that `smallest_pct: 5` asks for."""
    whole = (
        *((name, kind, NIGHTS) for name, kind in QUIET.items()),
        *((name, kind, CONTROL) for name, kind in STORED.items()),
        *((name, kind, PLANTED) for name, kind in STEPS.items()),
    )
    return tuple(
        Cell(
            group=name,
            kind=kind,
            methods=(OURS_SMALLEST,),
            share=count / NIGHTS,
            most_runs=FEWER_RUNS,
        )
        for name, kind, count in whole
    )


def night_table(plays: Plays) -> str:
    """A line for each kind of night."""
    return rows(HEAD, list(_lines(plays)))


def _lines(plays: Plays) -> Iterator[list[str]]:
    for (cell, _), plays_of_cell in plays.items():
        alarms, count = _alarms(plays_of_cell), len(plays_of_cell)
        quiet = cell.group not in STEPS
        missed = "" if quiet else f"{sum(not play.right for play in plays_of_cell) / count:.1%}"
        each_month = f"{SERIES * DAYS * alarms / count:.1f}" if quiet else ""
        spent = f"{sum(play.runs for play in plays_of_cell) / count:.0f}"
        yield [cell.group, str(count), str(alarms), each_month, missed, spent]


def named_on(plays: Plays, look: Look) -> dict[str, Counter[str]]:
    """How many steps of each kind were named on which night.

    A tip without an alarm leaves the reference where it is: the next tip is compared with the same.
    """
    counts_by_kind = {cell.group: Counter[str]() for cell, _ in plays if cell.group in STEPS}
    plays_looked_at = [
        (cell, play) for (cell, _), plays_of_cell in plays.items() for play in plays_of_cell
    ]
    plays_looked_at = [
        (cell, play) for cell, play in plays_looked_at if cell.group in counts_by_kind
    ]
    for night in range(1, LAST_NIGHT + 1):
        for cell, outcome in plays_looked_at:
            if outcome.said is Said.STEP:
                counts_by_kind[cell.group][str(night) if outcome.right else OTHER] += 1
        missed = [(cell, play.seed) for cell, play in plays_looked_at if play.said is not Said.STEP]
        if night == LAST_NIGHT:
            for cell, _ in missed:
                counts_by_kind[cell.group][NEVER] += 1
        else:
            jobs = [_next_look(cell, night + 1, seed) for cell, seed in missed]
            plays_looked_at = [
                (job.cell, play) for job, plays_of_cell in look(jobs) for play in plays_of_cell
            ]
    return counts_by_kind


def _next_look(cell: Cell, night: int, seed: int) -> Job:
    kind = replace(cell.kind, night=night)
    return Job(cell=replace(cell, kind=kind), method=OURS_SMALLEST, seeds=range(seed, seed + 1))


def delay_table(counts_by_kind: dict[str, Counter[str]]) -> str:
    """A line for each size of step: how many were named on which night."""
    ends = (*map(str, range(1, LAST_NIGHT + 1)), NEVER, OTHER)
    lines = [
        [name, *(str(counts[night]) for night in ends)] for name, counts in counts_by_kind.items()
    ]
    return rows(("named on night", *ends), lines)


def _alarms(plays: Sequence[Play]) -> int:
    return sum(play.said is Said.STEP for play in plays)
