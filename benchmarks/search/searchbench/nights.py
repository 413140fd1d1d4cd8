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
    whole = (*((name, kind, NIGHTS) for name, kind in QUIET.items()),
             *((name, kind, CONTROL) for name, kind in STORED.items()),
             *((name, kind, PLANTED) for name, kind in STEPS.items()))  # fmt: skip
    return tuple(
        Cell(
            group=name, kind=kind, methods=(OURS_SMALLEST,), share=count / NIGHTS,
            most_runs=FEWER_RUNS,
        )
        for name, kind, count in whole
    )  # fmt: skip


def night_table(plays: Plays) -> str:
    """A line for each kind of night."""
    return rows(HEAD, list(_lines(plays)))


def _lines(plays: Plays) -> Iterator[list[str]]:
    for (cell, _), made in plays.items():
        alarms, count = _alarms(made), len(made)
        quiet = cell.group not in STEPS
        missed = "" if quiet else f"{sum(not each.right for each in made) / count:.1%}"
        each_month = f"{SERIES * DAYS * alarms / count:.1f}" if quiet else ""
        spent = f"{sum(each.runs for each in made) / count:.0f}"
        yield [cell.group, str(count), str(alarms), each_month, missed, spent]


def named_on(plays: Plays, look: Look) -> dict[str, Counter[str]]:
    """How many steps of each kind were named on which night.

    A tip without an alarm leaves the reference where it is: the next tip is compared with the same.
    """
    found = {cell.group: Counter[str]() for cell, _ in plays if cell.group in STEPS}
    looked = [(cell, each) for (cell, _), made in plays.items() for each in made]
    looked = [(cell, each) for cell, each in looked if cell.group in found]
    for night in range(1, LAST_NIGHT + 1):
        for cell, each in looked:
            if each.said is Said.STEP:
                found[cell.group][str(night) if each.right else OTHER] += 1
        missed = [(cell, each.seed) for cell, each in looked if each.said is not Said.STEP]
        if night == LAST_NIGHT:
            for cell, _ in missed:
                found[cell.group][NEVER] += 1
        else:
            jobs = [_next_look(cell, night + 1, seed) for cell, seed in missed]
            looked = [(job.cell, each) for job, made in look(jobs) for each in made]
    return found


def _next_look(cell: Cell, night: int, seed: int) -> Job:
    kind = replace(cell.kind, night=night)
    return Job(cell=replace(cell, kind=kind), method=OURS_SMALLEST, seeds=range(seed, seed + 1))


def delay_table(found: dict[str, Counter[str]]) -> str:
    """A line for each size of step: how many were named on which night."""
    ends = (*map(str, range(1, LAST_NIGHT + 1)), NEVER, OTHER)
    lines = [[name, *(str(counts[each]) for each in ends)] for name, counts in found.items()]
    return rows(("named on night", *ends), lines)


def _alarms(plays: Sequence[Play]) -> int:
    return sum(each.said is Said.STEP for each in plays)
