"""What all servers of one laboratory have in common, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsharness.containers.engine import Engine
from dsharness.errors import UsageError, WorkloadError
from dsharness.loads import LOADS
from dsharness.machine.hardware_counter import host_counts
from dsharness.machine.host import CpuPlan, available_cpus, plan_cpus
from dsharness.matrix import find_workload
from dsharness.measure.duet import Seats, duet_seats
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.model import DECIDER, Matrix, Row, Settings, SystemName, Workload
from dsharness.systems import SYSTEMS, Seed


@dataclass(frozen=True, kw_only=True)
class LabPlan:
    """What all servers of one laboratory have in common."""

    matrix: Matrix
    settings: Settings
    workloads: tuple[Workload, ...]
    cpus: CpuPlan
    seats: Seats | None = None  # two candidates are measured at the same time, on these CPUs
    counting: bool = False  # servers run in valgrind, which counts their instructions
    keep: bool = False

    @classmethod
    def on(
        cls,
        engine: Engine,
        *,
        matrix: Matrix,
        settings: Settings,
        workloads: Sequence[Workload],
        metric: str = DECIDER,
        duet: bool = True,
        keep: bool = False,
    ) -> LabPlan:
        """For this machine: in duets if there are enough CPUs; counted if the metric is that."""
        cpus = available_cpus()
        counting = metric == INSTRUCTIONS.name and not host_counts()
        seats = None
        if duet and not counting:
            seats = duet_seats(cpus, can_move=engine.moves_cpus)
        return cls(
            matrix=matrix,
            settings=settings,
            workloads=tuple(workloads),
            cpus=seats[0] if seats else plan_cpus(cpus, can_pin=engine.pins_cpus and not counting),
            seats=seats,
            counting=counting,
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

    def refuse_unfit(self, candidate: str, system: SystemName) -> None:
        """UsageError that says which workload or settings such a server cannot take, and why."""
        for workload in self.workloads:
            for why, hint in _misfits(candidate, system, workload, self):
                raise UsageError(why, hint=hint)


def default_workloads(matrix: Matrix, rows: Iterable[Row]) -> tuple[Workload, ...]:
    """Of the matrix's own those that all rows can answer; of none of them, the first that fits."""
    systems = {row.system for row in rows}
    fit = tuple(load for load in matrix.workloads if all(_answers(s, load) for s in systems))
    own = tuple(find_workload(matrix, name) for name in matrix.defaults.workloads)
    return tuple(load for load in own if load in fit) or fit[:1] or own


def _answers(system: SystemName, workload: Workload) -> bool:
    return SYSTEMS[system].protocol == LOADS[workload.tool].protocol


def _misfits(
    candidate: str, system: SystemName, workload: Workload, plan: LabPlan
) -> Iterator[tuple[str, str]]:
    driver, load, settings = SYSTEMS[system], LOADS[workload.tool], plan.settings
    if not _answers(system, workload):
        fit = [each.id for each in plan.matrix.workloads if _answers(system, each)]
        yield (
            (
                f"workload {workload.id!r} uses {load.protocol}, but {candidate!r} "
                f"({system}) answers {driver.protocol}"
            ),
            f"choose one that fits with --workload: {', '.join(fit) or 'the matrix has none'}",
        )
    for name in sorted(settings.options.keys() - driver.options):
        yield (
            f"settings {settings.id!r} set {name!r}, which {candidate!r} ({system}) does not know",
            f"it knows {', '.join(sorted(driver.options)) or 'none'}",
        )
