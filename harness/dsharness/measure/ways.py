"""How a turn is measured: one candidate after the other, two at the same time, stopped, or counted.

A way is chosen for a whole laboratory, and samples of two ways are never compared.

In a duet two candidates are measured at the same time, each on its own CPUs, which they swap. What
a busy machine does to one of them, it does to the other at the same moment; what is special about a
CPU affects both in turn. So their ratio is steadier than either cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from dsharness.loads.load_driver import run_size
from dsharness.machine.hardware_counter import host_counts
from dsharness.machine.host import CpuShares, share_cpus
from dsharness.measure.exact_count import Counter, take_count
from dsharness.measure.exact_counters import Callgrind, Strace
from dsharness.measure.gate import Gate, RunEvidence, count_objections, objections
from dsharness.measure.import_run import take_import
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.measure.sample import (
    Bench,
    Run,
    run_load,
    sample_of,
    take_sample,
    warm_up,
    write_files,
)
from dsharness.model import Sample, Turn, WayName
from dsharness.process.command import find_tool

HALVES = 2

Seats = tuple[CpuShares, CpuShares]


def duet_seats(available: tuple[int, ...], *, can_move: bool) -> Seats | None:
    """Return two places with their own CPUs; a server and its load share those of their place."""
    half = len(available) // 2
    if not can_move or not half:
        return None
    first, second = available[:half], available[half : 2 * half]
    return (
        CpuShares(server=first, load=first, pinned=True),
        CpuShares(server=second, load=second, pinned=True),
    )


def take_duet(
    pair: tuple[Bench, Bench], seats: Seats, turn: Turn, gate: Gate = objections
) -> tuple[Sample, Sample]:
    """Return a sample of each; a failure of one does not affect the other.

    The first of the turn sits on the first seat first.
    """
    workload = turn.workload
    runs: tuple[list[Run], list[Run]] = ([], [])
    with ThreadPoolExecutor(max_workers=len(pair), thread_name_prefix="duet") as pool:
        for bench, seat in zip(pair, seats, strict=True):
            write_files(bench, workload, turn.number)
            sit(bench, seat)
        list(pool.map(lambda bench: warm_up(bench, workload), pair))
        sizes = [run_size(workload, bench.pace.get(workload.id), 1 / HALVES) for bench in pair]
        for half in range(HALVES):
            order = seats if half % 2 == 0 else seats[::-1]
            for bench, seat in zip(pair, order, strict=True):
                sit(bench, seat)
            bench_runs = pool.map(
                lambda bench, size, seat: run_load(bench, workload, size, seat), pair, sizes, order
            )
            for own_runs, run in zip(runs, bench_runs, strict=True):
                own_runs.append(run)
    first, second = (
        sample_of(bench, turn, own, gate, duet=True) for bench, own in zip(pair, runs, strict=True)
    )
    return first, second


def sit(bench: Bench, seat: CpuShares) -> None:
    """Move a server and its load to those CPUs."""
    bench.instance.container.move(seat.server)
    bench.load.move(seat.load)


AT_ONCE = 2  # servers that are counted at the same time


@dataclass(frozen=True, kw_only=True)
class Places:
    """The CPUs that there are, and what the engine can do with them."""

    available: tuple[int, ...]
    can_pin: bool
    can_move: bool


Measuring = Callable[[], AbstractContextManager[None]]  # a run happens within it


class Way(Protocol):
    """One way to measure."""

    name: ClassVar[WayName]
    paired: ClassVar[bool]  # whether two candidates meet the same moment of the machine
    counts: ClassVar[bool]  # whether it uses no time, so that others may measure meanwhile
    in_valgrind: ClassVar[bool]  # whether servers run in it

    @classmethod
    def on(cls, places: Places) -> Self | None:
        """Return the way on this machine; None where it cannot be."""
        ...

    @property
    def cpus(self) -> CpuShares:
        """Where a server and its load begin."""
        ...

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        """Yield a sample of each, in the turn's order."""
        ...

    def objections(self, evidence: RunEvidence) -> tuple[str, ...]:
        """Return why a run that was measured so may not be used; empty when it may."""
        ...


@dataclass(frozen=True, kw_only=True)
class InTurn:
    """One candidate after the other."""

    name: ClassVar[WayName] = "in turn"
    paired: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    in_valgrind: ClassVar[bool] = False
    cpus: CpuShares

    @classmethod
    def on(cls, places: Places) -> Self:
        return cls(cpus=share_cpus(places.available, can_pin=places.can_pin))

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        for bench in benches:
            with measuring():
                sample = take_sample(bench, turn, self.objections)
            yield sample

    def objections(self, evidence: RunEvidence) -> tuple[str, ...]:
        return objections(evidence)


@dataclass(frozen=True, kw_only=True)
class Duet:
    """Two at the same time, each on its own CPUs; another number of them in turn."""

    name: ClassVar[WayName] = "duet"
    paired: ClassVar[bool] = True
    counts: ClassVar[bool] = False
    in_valgrind: ClassVar[bool] = False
    seats: Seats

    @classmethod
    def on(cls, places: Places) -> Self | None:
        seats = duet_seats(places.available, can_move=places.can_move)
        return cls(seats=seats) if seats else None

    @property
    def cpus(self) -> CpuShares:
        return self.seats[0]

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        if len(benches) != len(self.seats):
            for bench in benches:
                sit(bench, bench.cpus)  # where an earlier duet may have moved it from
            yield from InTurn(cpus=self.cpus).take(turn, benches, measuring)
            return
        first, second = benches
        with measuring():
            samples = take_duet((first, second), self.seats, turn, self.objections)
        yield from samples

    def objections(self, evidence: RunEvidence) -> tuple[str, ...]:
        return objections(evidence)


class Importing(InTurn):
    """One candidate after the other, stopped while its entries are imported on all CPUs."""

    name: ClassVar[WayName] = "import"

    @classmethod
    def on(cls, places: Places) -> Self:
        return cls(cpus=share_cpus(places.available, can_pin=False))

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        for bench in benches:
            with measuring():
                sample = take_import(bench, turn, self.objections)
            yield sample


@dataclass(frozen=True, kw_only=True)
class Counted:
    """All at the same time: a count does not depend on what else the machine does."""

    paired: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    counter: ClassVar[Counter]
    cpus: CpuShares

    @classmethod
    def on(cls, places: Places) -> Self:
        return cls(cpus=share_cpus(places.available, can_pin=False))

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        def count(bench: Bench) -> Sample:
            return take_count(bench, turn, self.counter, self.objections)

        with (
            measuring(),
            ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="count") as pool,
        ):
            yield from pool.map(count, benches)

    def objections(self, evidence: RunEvidence) -> tuple[str, ...]:
        return count_objections(evidence)


class CountedInstructions(Counted):
    """The instructions of servers in valgrind."""

    name: ClassVar[WayName] = "callgrind"
    in_valgrind: ClassVar[bool] = True
    counter: ClassVar[Counter] = Callgrind()


class CountedCalls(Counted):
    """The system calls of servers, by strace."""

    name: ClassVar[WayName] = "strace"
    in_valgrind: ClassVar[bool] = False
    counter: ClassVar[Counter] = Strace()

    @classmethod
    def on(cls, places: Places) -> Self:
        find_tool("strace")
        return super().on(places)


WAYS: dict[WayName, type[Way]] = {
    way.name: way for way in (InTurn, Duet, Importing, CountedInstructions, CountedCalls)
}


def way_for(
    available: tuple[int, ...],
    metric: str,
    *,
    duet: bool,
    can_pin: bool,
    can_move: bool,
    imports: bool = False,
) -> Way:
    """Return duets if there are enough CPUs; others if load or metric need them."""
    places = Places(available=available, can_pin=can_pin, can_move=can_move)
    names: tuple[WayName, ...] = ("duet", "in turn") if duet else ("in turn",)
    if imports:
        names = ("import",)
    elif metric in {kind.name for kind in Strace.kinds}:
        names = ("strace",)
    elif metric == INSTRUCTIONS.name and not host_counts():
        names = ("callgrind",)
    ways = (WAYS[name].on(places) for name in names)
    return next(way for way in ways if way is not None)
