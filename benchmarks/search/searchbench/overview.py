"""The tables of the page: all searches on the main histories, and each history in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from searchbench.cell import Cell
from searchbench.markdown import rows
from searchbench.methods import OURS
from searchbench.peer_scenarios import MAIN, PEERS
from searchbench.play import Play
from searchbench.plays import Plays
from searchbench.score import score
from searchbench.world_scenarios import WORLD_GROUPS

NOTHING = "-"


class Outcome(NamedTuple):
    """What a search made of the histories of a cell."""

    right: float
    runs: float
    builds: float

    def __str__(self) -> str:
        return f"{self.right:.2f}, {self.runs:.0f}, {self.builds:.1f}"


class History(NamedTuple):
    """A cell of the benchmark and what each search made of it."""

    group: str
    label: str
    plays: int
    outcomes: Mapping[str, Outcome]


def histories(plays: Plays) -> Iterator[History]:
    for cell in dict.fromkeys(cell for cell, _ in plays):
        made = {method: played for (known, method), played in plays.items() if known == cell}
        outcomes = {method: _outcome(cell, played) for method, played in made.items()}
        yield History(cell.group, cell.label, max(map(len, made.values())), outcomes)


def _outcome(cell: Cell, plays: Sequence[Play]) -> Outcome:
    figures = score(plays)
    right = figures.fair if cell.group in WORLD_GROUPS else figures.right
    return Outcome(right, figures.runs, figures.builds)


def overview(cells: Sequence[History]) -> str:
    main = [cell for cell in cells if cell.group == MAIN]
    others = (cell for cell in cells if cell.group != MAIN)
    searches = dict.fromkeys(search for cell in main for search in cell.outcomes)
    compared = (
        [search, *(str(cell.outcomes.get(search, NOTHING)) for cell in main)] for search in searches
    )
    parts = (
        f"## {MAIN}\n",
        rows(["right, runs, builds", *(cell.label.partition(", ")[2] for cell in main)], compared),
        "## Other histories\n",
        rows(["histories", "right", "runs", "builds", "best peer's right"], map(_line, others)),
    )
    return "\n".join(parts)


def _line(cell: History) -> list[str]:
    ours = cell.outcomes[OURS]
    peers = [search for search in PEERS if search in cell.outcomes]
    best = max(
        peers,
        key=lambda search: (cell.outcomes[search].right, -cell.outcomes[search].runs),
        default=None,
    )
    return [
        f"{cell.label.removeprefix('n=128, ')} ({cell.plays})",
        f"{ours.right:.2f}",
        f"{ours.runs:.0f}",
        f"{ours.builds:.1f}",
        NOTHING if best is None else f"{best}: {cell.outcomes[best].right:.2f}",
    ]
