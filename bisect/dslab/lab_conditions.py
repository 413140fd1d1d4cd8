"""What all servers of one laboratory have in common, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dsharness.containers.engine import Engine
from dsharness.errors import UsageError, WorkloadError
from dsharness.machine.host import available_cpus
from dsharness.matrix import find_workload
from dsharness.measure.metrics import find_metric, refuse_unfit
from dsharness.measure.ways import Way, way_for
from dsharness.model import DECIDER, Content, Matrix, Settings, SystemName, Workload, largest
from dsharness.systems import SYSTEMS, Seed, answers
from dsharness.systems.system import ConnectionHolder, importer


@dataclass(frozen=True, kw_only=True)
class LabConditions:
    """What all servers of one laboratory have in common."""

    matrix: Matrix
    settings: Settings
    workloads: tuple[Workload, ...]
    way: Way
    keep: bool = False
    of_start: bool = False  # what decides has one value for each start of a server
    of_age: bool = False  # it is told by what a server goes on to do, long after its start

    @classmethod
    def on(
        cls,
        engine: Engine,
        *,
        matrix: Matrix,
        settings: Settings,
        workloads: Sequence[Workload],
        metric: str | None = None,
        duet: bool = True,
        keep: bool = False,
    ) -> LabConditions:
        """The conditions on this machine; without a metric nothing is to be decided."""
        refuse_shares(workloads)
        decider = find_metric(metric or DECIDER)
        if metric is not None:
            refuse_unfit(decider, workloads)
        return cls(
            matrix=matrix,
            settings=settings,
            workloads=tuple(workloads),
            way=way_for(
                available_cpus(), decider.name, duet=duet,
                imports=any(workload.stopped for workload in workloads),
                can_pin=engine.pins_cpus, can_move=engine.moves_cpus,
            ),
            keep=keep,
            of_start=decider.of_start,
            of_age=decider.of_age,
        )  # fmt: skip

    @property
    def seed(self) -> Seed:
        content = largest(workload.content for workload in self.workloads)
        sizes = {workload.named: workload.content.number for workload in self.workloads}
        if any(name.endswith(f"@{size}") for name, size in sizes.items() if size < content.number):
            raise WorkloadError(
                f"workloads for directories of several sizes: {', '.join(sizes)}",
                hint="ask for them one after the other: what is filled is as large as the largest",
            )
        if len({_made(workload.content) for workload in self.workloads}) > 1:
            raise WorkloadError(
                f"workloads for servers with other plugins or imports: {', '.join(sizes)}",
                hint="ask for them one after the other: one server of each row answers all",
            )
        return Seed(content=content, settings=self.settings)

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
        refuse_misfits(candidate, system, self.workloads, self.settings, self.matrix)


def measures_pairs(engine: Engine | None, metric: str, workload: Workload) -> bool:
    """Whether a search on this machine measures two at the same time; any engine may, unasked."""
    way = way_for(
        available_cpus(), metric, duet=True, imports=workload.stopped,
        can_pin=engine is None or engine.pins_cpus, can_move=engine is None or engine.moves_cpus,
    )  # fmt: skip
    return way.paired


def refuse_misfits(
    candidate: str,
    system: SystemName,
    workloads: Iterable[Workload],
    settings: Settings,
    matrix: Matrix,
) -> None:
    """UsageError for the first workload or settings that such a server cannot take; what fits."""
    for workload in workloads:
        for why, hint in _misfits(candidate, system, workload, settings, matrix):
            raise UsageError(why, hint=hint)


def refuse_shares(workloads: Iterable[Workload]) -> None:
    """UsageError for a load whose rate is still to be found, which not every command does."""
    for workload in workloads:
        if workload.share_pct is not None:
            raise UsageError(
                f"workload {workload.named!r} has `scheduled_pct: {workload.share_pct:g}`, a share "
                "of a capacity that this command does not measure",
                hint="`bisect rows` measures it, and `bisect commits` without --on; otherwise "
                "write `scheduled:` with operations a second",
            )


def _made(content: Content) -> tuple[object, ...]:
    """What makes it a server that other workloads would find changed."""
    return tuple(getattr(content, name, None) for name in ("plugins", "imported"))


def default_workloads(matrix: Matrix, systems: Iterable[SystemName]) -> tuple[Workload, ...]:
    """Those of the matrix's own that all can answer; where there are none, the first that fits."""
    fit = fitting_workloads(matrix, systems)
    own = tuple(find_workload(matrix, name) for name in matrix.defaults.workloads)
    return tuple(load for load in own if load in fit) or fit[:1] or own


def fitting_workloads(matrix: Matrix, systems: Iterable[SystemName]) -> tuple[Workload, ...]:
    """Return those of the matrix that all these systems can answer."""
    systems = set(systems)
    return tuple(
        load
        for load in matrix.workloads
        if all(answers(name, load) and load.needs <= SYSTEMS[name].offers for name in systems)
    )


def _misfits(
    candidate: str, system: SystemName, workload: Workload, settings: Settings, matrix: Matrix
) -> Iterator[tuple[str, str]]:
    driver = SYSTEMS[system]
    if not answers(system, workload):
        fit = [load.id for load in fitting_workloads(matrix, [system])]
        yield (
            (
                f"workload {workload.id!r} uses {workload.protocol}, but {candidate!r} "
                f"({system}) answers {', '.join(sorted(driver.protocols))}"
            ),
            f"choose one that fits with --workload: {', '.join(fit) or 'the matrix has none'}",
        )
    elif workload.stopped and importer(driver) is None:
        fit = [name for name, system_driver in SYSTEMS.items() if importer(system_driver)]
        yield (
            (
                f"workload {workload.id!r} imports users into a stopped server, which the lab "
                f"cannot do with {candidate!r} ({system})"
            ),
            f"choose another workload, or a row with a `system` of {', '.join(fit)}",
        )
    elif missing := workload.needs - driver.offers:
        fit = [name for name, system_driver in SYSTEMS.items() if missing <= system_driver.offers]
        yield (
            (
                f"workload {workload.id!r} needs {', '.join(sorted(missing))}, which the lab "
                f"cannot have of {candidate!r} ({system})"
            ),
            f"choose another workload, or a row with a `system` of {', '.join(fit) or 'none'}",
        )
    for name in sorted(settings.options.keys() - driver.options):
        yield (
            f"settings {settings.id!r} set {name!r}, which {candidate!r} ({system}) does not know",
            f"it knows {', '.join(sorted(driver.options)) or 'none'}",
        )
    most = driver.most_connections(settings) if isinstance(driver, ConnectionHolder) else None
    if most is not None and workload.connections > most:
        yield (
            (
                f"workload {workload.id!r} holds {workload.connections:,} connections, but with "
                f"settings {settings.id!r} {candidate!r} ({system}) has room for {most:,}"
            ),
            "choose --settings with more `descriptors`, or another workload",
        )
