"""Cells with what real machines and compilers do to a search."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.search.cell import Cell
from benchmarks.search.kinds import Kind, Truth
from benchmarks.search.methods import CLAIRVOYANT, FIXED, OURS, PINPOINT

STRAYS = "Builds that differ by 1 %, n = 128"
RATES = "A noisy rate, n = 128"
BUILDS = "Builds that differ by 2 or 3 %, n = 128"
MODES = "Runs of two modes, n = 128"
RAMPS = "A ramp, n = 128"
BACKS = "There and back, n = 128"
SMALL = "Small steps, n = 128"
MACHINES = "Two machines, n = 128"

WORLD_GROUPS = frozenset({STRAYS, RATES, BUILDS, MODES, RAMPS, BACKS, SMALL, MACHINES})

STEADY = (5.0, 5.0)
PEERS = (OURS, FIXED, PINPOINT)
MACHINE_STEP = Kind(step_pct=10.0, cv_pct=STEADY)  # on the better machine alone
NEAR_LIMIT = tuple(Kind(d=d, scatter_pct=1.0) for d in (1.0, 2.0, 4.0))


def world_cells() -> tuple[Cell, ...]:
    return (
        *_cells(STRAYS, NEAR_LIMIT, (OURS, CLAIRVOYANT), 1.0),
        *_cells(RATES, _rates(), (OURS,)),
        *_cells(BUILDS, _builds(), PEERS),
        *_cells(MODES, [Kind(step_pct=15.0, cv_pct=(3.0, 5.0), slow_runs=True)], PEERS),
        *_cells(RAMPS, _ramps(), PEERS),
        *_cells(BACKS, _backs(), PEERS),
        *_cells(SMALL, [Kind(step_pct=pct, cv_pct=(1.0, 1.0)) for pct in (3.0, 4.0)], PEERS),
        *_cells(MACHINES, _machines(), (OURS,)),
    )


def _cells(
    group: str, kinds: Sequence[Kind], methods: tuple[str, ...], share: float = 0.5
) -> list[Cell]:
    return [Cell(group=group, kind=kind, methods=methods, share=share) for kind in kinds]


def _rates() -> Sequence[Kind]:
    return [
        MACHINE_STEP,
        Kind(step_pct=10.0, cv_pct=STEADY, rate_cv_pct=26.0),
        Kind(step_pct=10.0, cv_pct=STEADY, rate_wanders=True),
    ]


def _builds() -> Sequence[Kind]:
    return [
        Kind(truth=truth, step_pct=10.0, cv_pct=STEADY, scatter_pct=pct)
        for truth in (Truth.NONE, Truth.STEP)
        for pct in (2.0, 3.0)
    ]


def _ramps() -> Sequence[Kind]:
    return [Kind(truth=Truth.RAMP, step_pct=pct, cv_pct=STEADY) for pct in (20.0, 50.0)]


def _backs() -> Sequence[Kind]:
    return [
        Kind(truth=Truth.BACK, step_pct=30.0, cv_pct=STEADY),
        Kind(truth=Truth.BACK, step_pct=-20.0, then_pct=30.0, cv_pct=STEADY),
    ]


def _machines() -> Sequence[Kind]:
    return [MACHINE_STEP, Kind(step_pct=10.0, cv_pct=STEADY, second_machine=True)]
