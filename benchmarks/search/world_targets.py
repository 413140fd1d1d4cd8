"""How many runs the search may take in worlds that machines and compilers make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.search.cell import Cell
from benchmarks.search.kinds import Truth
from benchmarks.search.methods import CLAIRVOYANT, OURS, OURS_SCATTER
from benchmarks.search.play import Play
from benchmarks.search.plays import Plays, find
from benchmarks.search.score import score
from benchmarks.search.target import Target, at_most
from benchmarks.search.world_scenarios import MACHINES, WORLD_GROUPS

OVER_LIMIT = {OURS: 1.25, OURS_SCATTER: 1.15}  # times the runs of the clairvoyant
OVER_BETTER = 1.44  # 5 % and 8 % in turns tell so much less than 5 % alone


def world_targets(plays: Plays) -> Iterator[Target]:
    for (cell, method), found in plays.items():
        limit = find(plays, cell.kind, CLAIRVOYANT)
        if limit and cell.group in WORLD_GROUPS and method in OVER_LIMIT:
            yield _near_limit(cell, method, found, limit)
    yield from _machines(plays)


def _near_limit(cell: Cell, method: str, plays: Sequence[Play], limit: Sequence[Play]) -> Target:
    found, least = score(plays), score(limit).runs
    most = OVER_LIMIT[method]
    what = f"{cell.label}, {method}: runs, {most:g} times the clairvoyant's {least:.1f}"
    return at_most(what, found.runs, found.runs_error, most * least)


def _machines(plays: Plays) -> Iterator[Target]:
    """Both against the better one alone."""
    found = {
        cell.kind.second_machine: score(made)
        for (cell, method), made in plays.items()
        if method == OURS and cell.group == MACHINES and cell.kind.truth is Truth.STEP
    }
    if len(found) < 2:
        return
    both, better = found[True], found[False]
    yield at_most(
        f"two machines: runs, {OVER_BETTER:g} times those of the better one alone",
        both.runs,
        both.runs_error,
        OVER_BETTER * better.runs,
    )
