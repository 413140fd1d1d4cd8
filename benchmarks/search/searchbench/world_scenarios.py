"""Cells with what real machines and compilers do to a search and to its peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from searchbench.cell import FEWER_RUNS, Cell
from searchbench.kinds import Kind, Truth
from searchbench.methods import FIXED, OURS, PINPOINT

RATES = "A noisy rate, n = 128"
BUILDS = "Builds that differ by 2 or 3 %, n = 128"
MODES = "Runs of two modes, n = 128"
RAMPS = "A ramp, n = 128"
BACKS = "There and back, n = 128"
SMALL = "Small steps, n = 128"
MACHINES = "Two machines, n = 128"

WORLD_GROUPS = frozenset({RATES, BUILDS, MODES, RAMPS, BACKS, SMALL, MACHINES})

STEADY = (5.0, 5.0)
PEERS = (OURS, FIXED, PINPOINT)
MACHINE_STEP = Kind(step_pct=10.0, cv_pct=STEADY)  # on the better machine alone
TWO_MACHINES = replace(MACHINE_STEP, second_machine=True)
MODES_STEP = Kind(step_pct=15.0, cv_pct=(3.0, 5.0), slow_runs=True)
SMALL_STEPS = tuple(Kind(step_pct=pct, cv_pct=(1.0, 1.0)) for pct in (3.0, 4.0))


def world_cells() -> tuple[Cell, ...]:
    return (
        *_cells(RATES, _rates(), (OURS,)),
        *_cells(BUILDS, _builds(), PEERS),
        *_cells(MODES, [MODES_STEP], PEERS),
        *_cells(MODES, [without_step(MODES_STEP)], PEERS, 0.5),
        *_cells(RAMPS, _ramps(), PEERS),
        *_cells(BACKS, _backs(), PEERS),
        *_cells(SMALL, SMALL_STEPS, PEERS),
        *_cells(SMALL, [without_step(SMALL_STEPS[0])], PEERS, 0.5),
        *_cells(MACHINES, [MACHINE_STEP, TWO_MACHINES], (OURS,), held=frozenset({OURS})),
        *_cells(MACHINES, [without_step(TWO_MACHINES)], (OURS,), 0.5),
    )


def without_step(kind: Kind) -> Kind:
    """The same noise, and nothing to find in it."""
    return replace(kind, truth=Truth.NONE)


def _cells(
    group: str,
    kinds: Sequence[Kind],
    methods: tuple[str, ...],
    share: float = 0.7,
    held: frozenset[str] = frozenset(),
) -> list[Cell]:
    return [
        Cell(group=group, kind=kind, methods=methods, share=share, most_runs=FEWER_RUNS, held=held)
        for kind in kinds
    ]


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
