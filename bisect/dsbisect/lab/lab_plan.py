"""What all servers of one laboratory have in common, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsharness.containers.engine import Engine
from dsharness.errors import WorkloadError
from dsharness.machine.host import CpuPlan, available_cpus, plan_cpus
from dsharness.measure.duet import Seats, duet_seats
from dsharness.model import Matrix, Settings, Workload
from dsharness.systems import Seed


@dataclass(frozen=True, kw_only=True)
class LabPlan:
    """What all servers of one laboratory have in common."""

    matrix: Matrix
    settings: Settings
    workloads: tuple[Workload, ...]
    cpus: CpuPlan
    seats: Seats | None = None  # two candidates are measured at the same time, on these CPUs
    keep: bool = False

    @classmethod
    def on(
        cls,
        engine: Engine,
        *,
        matrix: Matrix,
        settings: Settings,
        workloads: Sequence[Workload],
        duet: bool = True,
        keep: bool = False,
    ) -> LabPlan:
        """For this machine: in duets if there are enough CPUs."""
        cpus = available_cpus()
        seats = duet_seats(cpus, can_move=engine.moves_cpus) if duet else None
        return cls(
            matrix=matrix,
            settings=settings,
            workloads=tuple(workloads),
            cpus=seats[0] if seats else plan_cpus(cpus, can_pin=engine.pins_cpus),
            seats=seats,
            keep=keep,
        )

    @property
    def seed(self) -> Seed:
        entries = max(workload.entries for workload in self.workloads)
        return Seed(entries=entries, settings=self.settings)

    @property
    def tool(self) -> str:
        """What applies the load; one lab has one."""
        tools = {workload.tool: workload.id for workload in self.workloads}
        if len(tools) > 1:
            raise WorkloadError(
                f"workloads of several load tools: {', '.join(map(': '.join, tools.items()))}",
                hint="ask for them one after the other",
            )
        return next(iter(tools))
