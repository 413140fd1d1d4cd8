"""The families of worlds in which the search is asked whether what it says is true.

Each law of noise is played alone, and in duets, where the speed of the machine wanders by turn. A
family's worlds are shared out over its kinds: nothing to find, a step of one noise, one of three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from zlib import crc32

from searchbench.cell import Cell
from searchbench.kinds import Kind, Noise, Truth
from searchbench.methods import (
    CLAIRVOYANT,
    OURS,
    OURS_ALL,
    OURS_EXPECTED,
    OURS_SCATTER,
    OURS_SMALLEST,
)

WORLDS = 12  # of a family
MOST_RUNS = 300  # of one search
MOST_WORLDS = 1000  # of a kind: between the seeds of one and of the next
MOST_KINDS = 10  # of a family
FOR_TUNING = 10**14  # between the seeds of pages and those for tuning
DUETS = ", in duets"

PLAIN = "noise of 2 to 6 %"
QUIET, LOUD = "noise of 1 to 3 %", "noise of 5 to 20 %"
BASE = Kind(n=64, cv_pct=(2.0, 6.0), either_way=True, budget=MOST_RUNS, proved=True)
LAWS: Mapping[str, Mapping[str, object]] = {
    PLAIN: {},
    QUIET: {"cv_pct": (1.0, 3.0)},
    LOUD: {"cv_pct": (5.0, 20.0)},
    "heavy tails": {"noise": Noise.HEAVY},
    "two modes of noise": {"noise": Noise.BIMODAL},
    "slow runs": {"slow_runs": True},
    "builds differ by 1 %": {"scatter_pct": 1.0},
    "builds differ by 2 %": {"scatter_pct": 2.0},
    "builds in two layouts": {"layout_pct": (2.0, 4.0)},
    "one candidate slow alone": {"odd_pct": 20.0},
    "slow starts": {"start_pct": (6.0, 15.0)},
    "one start for all runs": {"start_pct": (6.0, 15.0), "one_start": True},
    "a new day every 30 runs": {"sessions": True},
    "a steady drift": {"drifts": True},
    "neighbours steal": {"stolen": True},
    "runs fail at random": {"fails_pct": (10.0, 30.0)},
    "runs fail in spells": {"fails_pct": (10.0, 30.0), "spells": True},
    "slow runs take too long": {"censored_pct": (10.0, 30.0)},
}
BOTH: Mapping[str, Mapping[str, object]] = {  # in duets alone
    "heavy tails and slow starts": {"noise": Noise.HEAVY, "start_pct": (6.0, 15.0)},
    "heavy tails and two layouts": {"noise": Noise.HEAVY, "layout_pct": (2.0, 4.0)},
    "a quiet machine with slow runs": {"cv_pct": (1.0, 3.0), "slow_runs": True},
}


def _truths(base: Kind) -> tuple[Kind, ...]:
    return (replace(base, truth=Truth.NONE), replace(base, d=1.0), replace(base, d=3.0))


def _laws() -> dict[str, tuple[Kind, ...]]:
    kinds = {}
    for law, change in LAWS.items():
        base = replace(BASE, **change)  # type: ignore[arg-type]
        kinds[law] = _truths(base)
        kinds[law + DUETS] = _truths(replace(base, duets=True))
    for law, change in BOTH.items():
        kinds[law + DUETS] = _truths(replace(BASE, duets=True, **change))  # type: ignore[arg-type]
    return kinds


def _steps(base: Kind, *sizes: float) -> tuple[Kind, ...]:
    """Of so many percent, and nothing to find."""
    return (replace(base, truth=Truth.NONE), *(replace(base, step_pct=pct) for pct in sizes))


def _others() -> dict[str, tuple[Kind, ...]]:
    """What is a world of its own."""
    one_layout = replace(BASE, one_layout=True)
    near = replace(BASE, truth=Truth.BACK, d=4.0, apart=(1, 2), then_share=0.7)
    backs = (near, replace(near, then_share=1.0), replace(near, then_share=2.0))
    more = (
        replace(BASE, truth=Truth.TWO, d=3.0),
        replace(BASE, truth=Truth.RAMP, d=6.0),
        replace(BASE, truth=Truth.BACK, d=3.0),
    )
    polled = replace(BASE, metric="start-time")
    ticks = replace(BASE, metric="start-cpu")
    flushes = replace(BASE, metric="fsyncs", either_way=False)
    calls = replace(flushes, metric="syscalls")
    counted = replace(BASE, metric="instructions", cv_pct=(0.06, 0.06))
    return {
        "a step in one of two layouts": _steps(one_layout, 8.0, 15.0)[1:],
        "a step in one of two layouts" + DUETS: _steps(replace(one_layout, duets=True), 8.0, 15.0)[
            1:
        ],
        "two steps, or a ramp, or back": more,
        "two steps, or a ramp, or back" + DUETS: tuple(replace(kind, duets=True) for kind in more),
        "there and back at once": backs,
        "there and back at once" + DUETS: tuple(replace(kind, duets=True) for kind in backs),
        "start time, polled": _steps(polled, 15.0, 30.0),
        "start time, polled" + DUETS: _steps(replace(polled, duets=True), 15.0, 30.0),
        "CPU time of starts, in ticks": _steps(ticks, 10.0, 20.0),
        "CPU time of starts, in ticks" + DUETS: _steps(replace(ticks, duets=True), 10.0, 20.0),
        "counts": (
            *(replace(flushes, counts=pair) for pair in ((0.0, 2.0), (2.0, 0.0))),
            replace(flushes, truth=Truth.NONE, counts=(2.0, 2.0)),
            replace(calls, truth=Truth.NONE, counts=(37.0, 37.0)),
            *(replace(calls, counts=(few, 1.46 * few)) for few in (0.5, 37.0)),
        ),
        "instructions": _steps(counted, 0.9),
    }


FAMILIES: Mapping[str, tuple[Kind, ...]] = {**_laws(), **_others()}
EFFICIENCY: Mapping[str, tuple[Kind, ...]] = {
    f"efficiency, {noise}{DUETS * duets}": tuple(
        replace(BASE, n=128, d=d, cv_pct=cv_pct, duets=duets, proved=False) for d in (2.0, 4.0)
    )
    for noise, cv_pct in ((QUIET, (1.0, 3.0)), (LOUD, (5.0, 20.0)))
    for duets in (False, True)
}
OPTIONS = (OURS, OURS_ALL, OURS_SMALLEST, OURS_EXPECTED)


def family_cells(*, tuning: bool = False) -> tuple[Cell, ...]:
    families = {**FAMILIES, **EFFICIENCY}
    return tuple(cell for name, kinds in families.items() for cell in _cells(name, kinds, tuning))


def _cells(name: str, kinds: Sequence[Kind], tuning: bool) -> list[Cell]:  # noqa: FBT001
    """Each with seeds of its own: worlds of two families have nothing in common."""
    first = (1 + crc32(name.encode())) * MOST_KINDS * MOST_WORLDS + FOR_TUNING * tuning
    return [
        Cell(
            group=name,
            kind=kind,
            methods=_methods(name),
            share=1 / len(kinds),
            least=1,
            first_seed=first + number * MOST_WORLDS,
            most_runs=2 * MOST_RUNS,
        )
        for number, kind in enumerate(kinds)
    ]


def _methods(name: str) -> tuple[str, ...]:
    if name in EFFICIENCY:
        return (OURS, CLAIRVOYANT)
    if name == PLAIN:
        return OPTIONS
    return (OURS, OURS_SCATTER) if name.startswith("builds differ") else (OURS,)
