"""Nights of a standing watch: how often a quiet one is an alarm, and what of a step it sees.

A night is the search that `watch` asks: a day's commits, the reference first and the tip last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from searchbench.cell import FEWER_RUNS, Cell
from searchbench.findings import Said
from searchbench.kinds import Kind, Truth
from searchbench.markdown import rows
from searchbench.methods import OURS_SMALLEST
from searchbench.play import Play
from searchbench.plays import Plays

NIGHTS, PLANTED = 500, 67  # of each kind: 2,000 quiet ones, 201 with a step
SERIES, DAYS = 12, 30
DAY = Kind(n=12, cv_pct=(2.0, 6.0))
QUIET = {
    "quiet": replace(DAY, truth=Truth.NONE),
    "quiet, a steady drift": replace(DAY, truth=Truth.NONE, drifts=True),
    "quiet, a new day every 30 runs": replace(DAY, truth=Truth.NONE, sessions=True),
    "quiet, neighbours steal": replace(DAY, truth=Truth.NONE, stolen=True),
}
STEPS = {f"a step of {pct:g} %": replace(DAY, step_pct=pct) for pct in (6.0, 12.0, 30.0)}
HEAD = ("nights", "number", "alarms", "of 12 series a month", "missed", "runs")


def night_cells() -> tuple[Cell, ...]:
    """All of them by the search that `smallest_pct: 5` asks for."""
    whole = (*((name, kind, NIGHTS) for name, kind in QUIET.items()),
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
        quiet = cell.group in QUIET
        missed = "" if quiet else f"{sum(not each.right for each in made) / count:.1%}"
        each_month = f"{SERIES * DAYS * alarms / count:.1f}" if quiet else ""
        spent = f"{sum(each.runs for each in made) / count:.0f}"
        yield [cell.group, str(count), str(alarms), each_month, missed, spent]


def _alarms(plays: Sequence[Play]) -> int:
    return sum(each.said is Said.STEP for each in plays)
