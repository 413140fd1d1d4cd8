"""How a turn is measured: one candidate after the other, two at the same time, or counted.

A way is chosen for a whole laboratory, and samples of two ways are never compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dsharness.machine.hardware_counter import host_counts
from dsharness.machine.host import CpuPlan, plan_cpus
from dsharness.measure.duet import Seats, duet_seats, sit, take_duet
from dsharness.measure.instruction_count import take_count
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.measure.sample import Bench, take_sample
from dsharness.model import Sample, Turn, WayName

AT_ONCE = 2  # servers that are counted at the same time

Measuring = Callable[[], AbstractContextManager[None]]  # a run happens within it


class Way(Protocol):
    """One way to measure."""

    name: ClassVar[WayName]
    paired: ClassVar[bool]  # whether two candidates meet the same moment of the machine
    counts: ClassVar[bool]  # whether servers run in valgrind

    @property
    def cpus(self) -> CpuPlan:
        """Where a server and its load begin."""
        ...

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        """A sample of each, in the turn's order."""
        ...


@dataclass(frozen=True, kw_only=True)
class InTurn:
    """One candidate after the other."""

    name: ClassVar[WayName] = "in turn"
    paired: ClassVar[bool] = False
    counts: ClassVar[bool] = False
    cpus: CpuPlan

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        for at in benches:
            with measuring():
                sample = take_sample(at, turn)
            yield sample


@dataclass(frozen=True, kw_only=True)
class Duet:
    """Two at the same time, each on its own CPUs; another number of them in turn."""

    name: ClassVar[WayName] = "duet"
    paired: ClassVar[bool] = True
    counts: ClassVar[bool] = False
    seats: Seats

    @property
    def cpus(self) -> CpuPlan:
        return self.seats[0]

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        if len(benches) != len(self.seats):
            for at in benches:
                sit(at, at.cpus)  # where an earlier duet may have moved it from
            yield from InTurn(cpus=self.cpus).take(turn, benches, measuring)
            return
        first, second = benches
        with measuring():
            taken = take_duet((first, second), self.seats, turn)
        yield from taken


@dataclass(frozen=True, kw_only=True)
class Counted:
    """All at the same time: a count does not depend on what else the machine does."""

    name: ClassVar[WayName] = "callgrind"
    paired: ClassVar[bool] = False
    counts: ClassVar[bool] = True
    cpus: CpuPlan

    def take(self, turn: Turn, benches: Sequence[Bench], measuring: Measuring) -> Iterator[Sample]:
        def count(at: Bench) -> Sample:
            return take_count(at, turn)

        with (
            measuring(),
            ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="count") as pool,
        ):
            yield from pool.map(count, benches)


def way_for(
    available: tuple[int, ...], metric: str, *, duet: bool, can_pin: bool, can_move: bool
) -> Way:
    """In duets if there are enough CPUs; counted if the metric is that, and no CPU counts it."""
    if metric == INSTRUCTIONS.name and not host_counts():
        return Counted(cpus=plan_cpus(available, can_pin=False))
    seats = duet_seats(available, can_move=can_move) if duet else None
    return Duet(seats=seats) if seats else InTurn(cpus=plan_cpus(available, can_pin=can_pin))
