"""A duet: two candidates measured at the same time, each on its own CPUs, which they swap.

What a busy machine does to one of them, it does to the other at the same moment; what is special
about a CPU affects both in turn. So their ratio is steadier than either cost.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from dsharness.loads.run_size import run_size
from dsharness.machine.host import CpuPlan
from dsharness.measure.sample import Bench, Run, run_load, sample_of, warm_up, write_files
from dsharness.model import Sample, Turn

HALVES = 2

Seats = tuple[CpuPlan, CpuPlan]


def duet_seats(available: tuple[int, ...], *, can_move: bool) -> Seats | None:
    """Two places with their own CPUs; a server and its load share those of their place."""
    half = len(available) // 2
    if not can_move or not half:
        return None
    first, second = available[:half], available[half : 2 * half]
    return (
        CpuPlan(server=first, load=first, pinned=True),
        CpuPlan(server=second, load=second, pinned=True),
    )


def take_duet(
    pair: tuple[Bench, Bench],
    seats: Seats,
    turn: Turn,
) -> tuple[Sample, Sample]:
    """A sample of each; a failure of one does not affect the other.

    The first of the turn sits on the first seat first.
    """
    workload = turn.workload
    runs: tuple[list[Run], list[Run]] = ([], [])
    with ThreadPoolExecutor(max_workers=len(pair), thread_name_prefix="duet") as pool:
        for at, seat in zip(pair, seats, strict=True):
            write_files(at, workload, turn.number)
            sit(at, seat)
        list(pool.map(lambda at: warm_up(at, workload), pair))
        sizes = [run_size(workload, at.pace.get(workload.id), 1 / HALVES) for at in pair]
        for half in range(HALVES):
            order = seats if half % 2 == 0 else seats[::-1]
            for at, seat in zip(pair, order, strict=True):
                sit(at, seat)
            played = pool.map(
                lambda at, size, seat: run_load(at, workload, size, seat), pair, sizes, order
            )
            for mine, run in zip(runs, played, strict=True):
                mine.append(run)
    first, second = (
        sample_of(at, turn, own, duet=True) for at, own in zip(pair, runs, strict=True)
    )
    return first, second


def sit(at: Bench, seat: CpuPlan) -> None:
    """Move a server and its load to those CPUs."""
    at.instance.container.move(seat.server)
    at.load.move(seat.load)
