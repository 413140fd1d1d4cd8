"""One sample: a bounded load on a ready instance, and everything needed to trust it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dsharness.containers.container import Container, Options, State, running
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.loads import LOADS, Extent, Load, LoadReport, Operations, Schedule, Seconds
from dsharness.loads.load_driver import run_size
from dsharness.machine.cgroups import ProcessTree, frozen_file, is_frozen
from dsharness.machine.hardware_counter import counting, host_counts, parse_count
from dsharness.machine.host import CpuShares, session_id
from dsharness.measure.gate import (
    Gate,
    RunEvidence,
    disturbances,
    load_bound,
    most_operations,
    objections,
    out_of_time,
)
from dsharness.measure.instance import Instance, Start, metered
from dsharness.measure.metric import Probed, Readings
from dsharness.measure.metrics import bounded, measured, probed, resident_bytes
from dsharness.model import (
    BenchFacts,
    Image,
    Latencies,
    Machine,
    Measurement,
    Procedure,
    ProgramUse,
    Sample,
    Turn,
    Usage,
    Workload,
)
from dsharness.paths import logs_home
from dsharness.process.command import writing
from dsharness.systems.readiness import shared_folder
from dsharness.systems.system import SHARED_FOLDER, CannotCount, Look, SeveralPrograms

LOAD_FOLDER = "/load"
BY_SIGNAL = 128  # a shell's status of a program that was ended by signal N is so much more
TIME_UP = {124, BY_SIGNAL + 9}  # the status of timeout(1) once it has ended a program
SETTLING_S, STILL_SHARE = 10, 0.04  # a long warm-up's steps, and what they may gain at its end
WARM_S = 1  # where another load has warmed the server up
PROCEDURE = 6  # samples of another way of measuring are not mixed with these


@dataclass(frozen=True, kw_only=True)
class Bench:
    """An instance, and a load generator on a network that reaches it, or in its own container."""

    instance: Instance
    load: Container
    folder: Path
    cpus: CpuShares
    machine: Machine
    facts: BenchFacts
    counts: bool = False  # whether the CPU counts instructions here
    start: int = 0  # which of its candidate's servers this is; 0: not known
    pause_files: tuple[Path, ...] = ()
    at_rest: Probed = field(default_factory=dict)  # of the server before its first load
    pace: dict[str, float] = field(default_factory=dict)  # workload -> operations a second so far

    @property
    def paused(self) -> bool:
        return any(is_frozen(file) for file in self.pause_files)

    @property
    def usable(self) -> bool:
        """Whether both containers still run."""
        return self.instance.alive and self.load.running


@contextmanager
def bench(
    engine: Engine,
    instance: Instance,
    loader: Image | None,
    cpus: CpuShares,
    machine: Machine,
    procedure: Procedure,
    *,
    start: int = 0,
    keep: bool = False,
) -> Iterator[Bench]:
    """Put the pinned load generator next to a server; of ours it reaches the loopback only.

    Without one the load is a program of the server's own.
    """
    home, name = instance.home, instance.candidate_id
    log_name = f"{name}-{home.golden.key}" if home else name
    with (
        shared_folder() as folder,
        nullcontext(instance.container)
        if loader is None
        else running(
            engine,
            loader.reference,
            purpose=f"load-{name}",
            log=logs_home() / "load" / f"{log_name}.log",
            options=load_options(
                instance.network,
                folder,
                cpus.load if cpus.pinned else (),
                server=home.shared if home else None,
            ),
            keep=keep,
        ) as load,
    ):
        yield Bench(
            instance=instance,
            load=load,
            folder=folder,
            cpus=cpus,
            machine=machine,
            facts=home.facts(procedure) if home else BenchFacts(procedure=procedure),
            counts=host_counts(),
            start=start,
            pause_files=_pause_files(instance.state(), load.state()),
            at_rest=_probed(instance.processes()),
        )


def load_options(
    network: str | None, folder: Path, cpus: tuple[int, ...] = (), server: Path | None = None
) -> Options:
    """Return how a load's container is confined: it has that network, and reads what it needs.

    Where it is next to a server of the lab, it also sees that one's socket.
    """
    shared = ((server, SHARED_FOLDER, "ro"),) if server else ()
    return Options(network=network, cpus=cpus, volumes=((folder, LOAD_FOLDER, "ro"), *shared))


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one load on a bench left; one run, or the two halves of a duet, make a sample."""

    started_at: str
    report: LoadReport
    look: Look | None
    evidence: RunEvidence
    calibrator_us: float | None
    steal_pct: float
    taken_pct: float | None
    server_waited_s: float | None
    load_cpus: int
    before: Probed = field(default_factory=dict)  # of the server's processes
    after: Probed = field(default_factory=dict)
    instructions: int | None = None  # where the CPU counts them
    usage: Usage | None = None
    programs: Mapping[str, ProgramUse] = field(default_factory=dict)
    limit_s: float = 0.0  # in which its operations were to be made

    @property
    def active_s(self) -> float:
        return self.report.active_s or float(len(self.report.per_second))


def take_sample(bench: Bench, turn: Turn, gate: Gate = objections) -> Sample:
    """Run the load once. Never raises for a run that went wrong: the sample says why."""
    workload = turn.workload
    write_files(bench, workload, turn.number)
    warm_up(bench, workload)
    size = run_size(workload, bench.pace.get(workload.id))
    return sample_of(bench, turn, [run_load(bench, workload, size, bench.cpus)], gate)


def write_files(bench: Bench, workload: Workload, turn: int) -> None:
    """Write what the load reads in this turn."""
    files = _load(workload).files(workload, bench.instance.endpoint, turn)
    for name, text in files.items():
        with writing(bench.folder / name):
            (bench.folder / name).write_text(text, encoding="utf-8")


def warm_up(bench: Bench, workload: Workload) -> None:
    """Fill a server's caches before its first run of a workload, and see how fast it is."""
    if workload.id in bench.pace:
        return
    if workload.settles and not bench.pace:
        rate = _settled(bench, workload)
    else:
        seconds = WARM_S if workload.settles else workload.warmup_s
        rate = execute_load(bench, workload, Seconds(seconds=seconds)).rate_per_s
    if rate:
        bench.pace[workload.id] = rate


def _settled(bench: Bench, workload: Workload) -> float | None:
    """Load a server until an operation costs no less than before; return its rate then."""
    rate, costs_us = None, list[float]()
    for _ in range(max(1, workload.warmup_s // SETTLING_S)):
        before_us = bench.instance.cpu_us()
        report = execute_load(bench, workload, Seconds(seconds=SETTLING_S))
        after_us = bench.instance.cpu_us()
        rate = report.rate_per_s or rate
        if before_us is None or after_us is None:
            break
        if report.total:  # a cold server may need longer than a step for its first answer
            costs_us.append((after_us - before_us) / report.total)
        if stands_still(costs_us):
            break
    costs = ", ".join(f"{cost_us / 1000:.3g}" for cost_us in costs_us)
    bench.load.note(
        f"warm-up of {workload.id}: ms of CPU an operation, each {SETTLING_S} s: {costs}\n"
    )
    return rate


def stands_still(costs: Sequence[float]) -> bool:
    """Whether the last two of them are hardly less than the one before."""
    return len(costs) > 2 and min(costs[-2:]) > (1 - STILL_SHARE) * costs[-3]


def time_now() -> str:
    """Return when a sample begins, as it is stored."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def run_load(bench: Bench, workload: Workload, size: Operations | Schedule, cpus: CpuShares) -> Run:
    """Make so many operations, and read the CPU time of exactly these."""
    instance, started_at = bench.instance, time_now()
    before, server_before = instance.look(), instance.processes()
    probed_before = _probed(server_before)
    metering = metered(
        instance,
        cpus,
        lambda: bench.paused,
        lambda: _counted_load(bench, workload, size, server_before),
    )
    report, instructions = metering.given
    server_after = instance.processes()
    probed_after = _probed(server_after)
    after = instance.look()
    if after is None:
        instance.note_end()
    server = instance.state()
    ended = server is not None and not server.running
    if report.rate_per_s:
        bench.pace[workload.id] = report.rate_per_s
    killed = "the server" if ended and server and server.killed else None
    evidence = RunEvidence(
        operations=size.total(workload.threads),
        may_miss=size.may_miss,
        threads=workload.threads,
        report=report,
        of_load=tuple(_load(workload).objections(report)),
        server_alive=not ended,
        overfilled=instance.overfilled(),
        server_operations=counted(instance, workload.operation, before, after),
        server_cpu_us=metering.server_cpu_us,
        of_system=instance.objections(after) if after else None,
        conditions=replace(
            metering.conditions,
            killed=killed or ("the load" if _load_killed(report, bench.load) else None),
        ),
    )
    return Run(
        started_at=started_at,
        report=report,
        look=after,
        evidence=evidence,
        calibrator_us=metering.calibrator_us,
        steal_pct=metering.steal_pct,
        taken_pct=metering.taken_pct(report.client_cpu_us if cpus.load == cpus.server else 0.0),
        server_waited_s=metering.waited_s,
        load_cpus=len(cpus.load),
        before=probed_before,
        after=probed_after,
        instructions=instructions,
        usage=metering.usage,
        programs=_programs(instance, server_before, server_after),
        limit_s=size.limit_s,
    )


def _programs(
    instance: Instance, before: ProcessTree | None, after: ProcessTree | None
) -> dict[str, ProgramUse]:
    """Return what each program of the system used between two looks; none where it is one."""
    system = instance.home.system if instance.home else None
    if not isinstance(system, SeveralPrograms) or before is None or after is None:
        return {}
    trees = {
        what: (before.named(name), after.named(name)) for what, name in system.programs.items()
    }
    return {
        what: ProgramUse(
            cpu_us=max(0.0, then.cpu_us - first.cpu_us), memory_kib=resident_bytes(then) / 1024
        )
        for what, (first, then) in trees.items()
        if then.pids
    }


def _load_killed(report: LoadReport, load: Container) -> bool:
    """Whether a signal ended the load's program, as its shell tells it, or its container is gone.

    What ends a load whose time is up ends its shell, too, which then tells no status.
    """
    if report.exit_status is not None:
        return report.exit_status > BY_SIGNAL
    return not report.total and not load.running


def sample_of(
    bench: Bench, turn: Turn, runs: Sequence[Run], gate: Gate = objections, *, duet: bool = False
) -> Sample:
    """Make one sample of runs that belong together; each CPU's own speed is taken out first."""
    latencies = _merged(run.report.latencies for run in runs)
    late = [run.report.late for run in runs if run.report.late]
    readings = _readings(bench, runs, latencies)
    alive = all(run.evidence.server_alive for run in runs)
    home, look = bench.instance.home, runs[-1].look
    starved_us = sum(run.report.starved_us for run in runs)
    return Sample(
        id=turn.sample_id(bench.instance.candidate_id),
        campaign_id=turn.campaign_id,
        candidate_id=bench.instance.candidate_id,
        settings_id=home.golden.seed.settings.id if home else "",
        workload_id=turn.workload.id,
        image_key=home.golden.image.key if home else "",
        turn=turn.number,
        attempt=turn.attempt,
        started_at=runs[0].started_at,
        session=session_id(),
        start=bench.start,
        duration_s=readings.active_s,
        operations=readings.operations,
        metrics=measured(readings),
        at_least=_bounds(readings, runs, gate),
        machine=bench.machine,
        calibrator_us=readings.unit_us,
        steal_pct=max(run.steal_pct for run in runs),
        taken_pct=max((run.taken_pct for run in runs if run.taken_pct is not None), default=None),
        server_waited_s=_total(run.server_waited_s for run in runs),
        load_waited_s=starved_us / 1e6 or None,
        gap_s=max(run.evidence.conditions.gap_s for run in runs),
        errors=sum(sum(run.report.errors.values()) for run in runs),
        per_second=tuple(
            rate for run in runs for rate in run.report.per_second[: int(run.active_s)]
        ),
        latencies=latencies,
        sent=_merged(run.report.sent for run in runs),
        steps=_merged(run.report.steps for run in runs),
        late=Latencies.merged(late) if late else None,
        usage=tuple(run.usage for run in runs if run.usage),
        programs=_joined(run.programs for run in runs),
        load_bound=load_bound(readings.client_us, readings.active_s, runs[0].load_cpus, starved_us),
        duet=duet,
        invalid=_once(why for run in runs for why in gate(run.evidence)),
        disturbed=_excuses(runs, gate),
        facts=look.facts if look else {},
        workload=turn.workload,
        bench=bench.facts,
        log=str(bench.load.log if alive else bench.instance.container.log),
    )


def _bounds(read: Readings, runs: Sequence[Run], gate: Gate) -> dict[str, Measurement]:
    """Bound runs whose time was up, and nothing else: no more was made than was begun."""
    late = [run for run in runs if out_of_time(run.evidence)]
    if not late or any(gate(run.evidence) for run in runs if run not in late):
        return {}
    operations = sum(
        most_operations(run.evidence) if run in late else run.report.total or 0 for run in runs
    )
    active_s = sum(max(run.active_s, run.limit_s if run in late else 0.0) for run in runs)
    return bounded(replace(read, operations=operations, active_s=active_s))


def _merged(parts: Iterable[Mapping[str, Latencies]]) -> dict[str, Latencies]:
    """Merge those of each kind of operation, over all runs."""
    reports = list(parts)
    kinds = dict.fromkeys(kind for part in reports for kind in part)
    return {
        kind: Latencies.merged(part[kind] for part in reports if kind in part) for kind in kinds
    }


def _joined(uses: Iterable[Mapping[str, ProgramUse]]) -> dict[str, ProgramUse]:
    """Sum the CPU time of all runs; memory is that of the last one."""
    joined: dict[str, ProgramUse] = {}
    for use_by_name in uses:
        for name, use in use_by_name.items():
            before_us = joined[name].cpu_us if name in joined else 0.0
            joined[name] = use.model_copy(update={"cpu_us": before_us + use.cpu_us})
    return joined


def _readings(bench: Bench, runs: Sequence[Run], latencies: Mapping[str, Latencies]) -> Readings:
    home = bench.instance.home
    start = home.start if home else Start()
    return Readings(
        operations=sum(run.report.total or 0 for run in runs),
        active_s=sum(run.active_s for run in runs),
        unit_us=_calibrator_us(runs),
        server_us=_total(run.evidence.server_cpu_us for run in runs),
        client_us=_total(run.report.client_cpu_us for run in runs),
        latencies=Latencies.merged(latencies.values()) if latencies else None,
        instructions=_total(run.instructions for run in runs),
        disturbances=_total(run.report.disturbances for run in runs),
        server_step_us=home.meter.step_us * len(runs) if home else 0.0,
        start_s=start.seconds,
        start_step_s=start.step_s,
        start_cpu_s=start.cpu_s,
        start_cpu_step_s=start.cpu_step_s,
        at_rest=bench.at_rest,
        after=runs[-1].after,
        gained={
            probe: sum(run.after[probe] - run.before[probe] for run in runs)
            for probe in runs[0].after
            if all(probe in probes for run in runs for probes in (run.before, run.after))
        },
    )


def _probed(server: ProcessTree | None) -> Probed:
    return probed(server) if server else {}


def _excuses(runs: Sequence[Run], gate: Gate) -> tuple[str, ...]:
    """Return what disturbed the runs, if that explains each one that may not be used."""
    refused = [run.evidence for run in runs if gate(run.evidence)]
    reasons = [disturbances(evidence, gate) for evidence in refused]
    return _once(why for excuses in reasons for why in excuses) if all(reasons) else ()


def _calibrator_us(runs: Sequence[Run]) -> float | None:
    """Return what divides the sum of costs as each run's own calibrator divides its cost."""
    times = [run.calibrator_us for run in runs]
    costs = [run.evidence.server_cpu_us for run in runs]
    if not all(times) or not all(costs):
        return times[0]
    units = sum(cost / time for cost, time in zip(costs, times, strict=True) if cost and time)
    return sum(cost for cost in costs if cost) / units


def execute_load(
    bench: Bench, workload: Workload, extent: Extent, behind: tuple[str, ...] = ()
) -> LoadReport:
    """Run the load tool once, bounded in time."""
    load = _load(workload)
    argv = load.argv(workload, bench.instance.endpoint, LOAD_FOLDER, extent)
    limit_s = extent.limit_s + (0.0 if extent.strict else load.grace_s + 15)
    result = bench.load.execute(*argv, limit_s=limit_s, behind=behind)
    report = load.parse(result.stdout)
    over = (
        result.timed_out or result.status in TIME_UP or (report.active_s or 0.0) >= extent.limit_s
    )
    return replace(report, expired=report.expired or over)


def _counted_load(
    bench: Bench, workload: Workload, extent: Extent, server: ProcessTree | None
) -> tuple[LoadReport, int | None]:
    """Return the run, and the instructions of the server meanwhile where the CPU counts them."""
    if server is None or not bench.counts:
        return execute_load(bench, workload, extent), None
    with scratch_folder("perf") as folder:
        out = Path(folder) / "count"
        report = execute_load(bench, workload, extent, counting(server.pids, out))
        return report, parse_count(out)


def _load(workload: Workload) -> Load:
    return LOADS[workload.tool]


def counted(
    instance: Instance, kind: str, before: Look | None, after: Look | None
) -> int | CannotCount | None:
    """Return the operations of the load alone: those of the later look of our own are left out."""
    if before is None or after is None:
        return None
    first, last = before.operations, after.operations
    if isinstance(first, CannotCount) or isinstance(last, CannotCount):
        return last if isinstance(last, CannotCount) else None
    own = instance.system.look_operations.get(kind, 0)
    return last[kind] - first[kind] - own if kind in last else None


def _pause_files(*states: State | None) -> tuple[Path, ...]:
    files = [frozen_file(state.pid, state.id) for state in states if state and state.running]
    return tuple(file for file in files if file)


def _total(amounts: Iterable[float | None]) -> float | None:
    """Return None where one of them is not known."""
    amounts_list = list(amounts)
    return (
        None
        if None in amounts_list
        else sum(amount for amount in amounts_list if amount is not None)
    )


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
