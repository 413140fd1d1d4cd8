"""The table of what is played: which worlds, which searches, how many times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from searchbench.cell import Cell
from searchbench.methods import OURS
from searchbench.peer_scenarios import MAIN, peer_cells
from searchbench.targets import SIZES
from searchbench.world_scenarios import world_cells

WORLDS = 36
QUICK_WORLDS = 6
LONG_WORLDS = 400


def cells() -> tuple[Cell, ...]:
    return (*peer_cells(), *world_cells())


def only(all_cells: Iterable[Cell], parts: Sequence[str]) -> tuple[Cell, ...]:
    """Those whose table or line has one of these in its title."""
    return tuple(
        cell
        for cell in all_cells
        if any(part.lower() in f"{cell.group}: {cell.label}".lower() for part in parts)
    )


def long() -> tuple[Cell, ...]:
    """What two variants of the search are compared by."""
    return tuple(
        replace(cell, methods=(OURS,), share=1.0)
        for cell in cells()
        if cell.group == MAIN and cell.kind.d in SIZES
    )
