"""A load that one can look at: workers of the lab's own load, shown by Locust while they run.

Locust is only the page and the hand that starts the workers. The verdict comes from what the
workers themselves have measured.
"""

from __future__ import annotations

import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.built_row import load_image
from dsharness.containers.container import Container, running
from dsharness.containers.engine import Engine
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import MatrixError, ToolMissingError, UsageError
from dsharness.extras import install_command
from dsharness.loads import LIVE, LiveLoad
from dsharness.loads.load_driver import Worker
from dsharness.machine.cgroups import UsageMeter
from dsharness.machine.host import CpuShares, available_cpus
from dsharness.machine.machine_lock import measuring_alone
from dsharness.measure.by_address import CANDIDATE, AddressRequest, found_host
from dsharness.measure.instance import Instance, serve
from dsharness.measure.sample import LOAD_FOLDER, load_options
from dsharness.model import (
    USER_BIND,
    Image,
    LdaploadWorkload,
    Matrix,
    Row,
    Settings,
    Value,
    Workload,
)
from dsharness.paths import logs_home
from dsharness.process.command import Completed, atomic_write, run
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsharness.systems.readiness import shared_folder
from dslab.candidates import RowSupply
from dslab.lab_conditions import LabConditions, fitting_workloads
from dsresults.compare.driven_load import DrivenLoad, driven_load, worker_heard
from dsresults.number_text import counted, duration, significant

PROGRAM = "locust"
PLAN_VARIABLE = "DSBISECT_LOAD_PLAN"
BEGIN_AND_END_S = 60.0
LOCUSTFILE = Path(__file__).with_name("load_users.py")
LOOPBACK = "127.0.0.1"
# What ends a worker must know its process: the program that started it knows podman's only.
_KNOWN = 'echo $$ >/tmp/worker; exec "$@"'
WORKER, BEGUN = "worker ", "the load has begun"  # what the locustfile says, and what for
KEPT_BYTES = 1 << 16  # of what Locust says
_STOP = 'kill "$(cat /tmp/worker)"'


class PlannedWorker(Value):
    """How a worker is started and stopped, and where what it says is kept."""

    name: str
    argv: tuple[str, ...]
    stop: tuple[str, ...]
    said: str


class LoadPlan(Value):
    """What the locustfile does."""

    server: str  # as it was named
    tool: str
    workers: tuple[PlannedWorker, ...]
    seconds: float
    limit_s: float
    cpus: tuple[int, ...]
    environment: dict[str, str]
    connections: int = 1  # of each worker
    meter: UsageMeter | None = None  # of the server, where it is the lab's own


@dataclass(frozen=True, kw_only=True)
class LoadRequest:
    """Which server, under how much load, for how long."""

    matrix: Matrix
    target: str | AddressRequest  # a row, or a server that someone else runs
    workload: Workload  # of each worker; its schedule is the worker's own rate
    settings: Settings
    workers: int = 1
    seconds: float = 60.0
    gui: bool = False
    port: int | None = None  # of the page; None: one that is free
    relock: bool = False
    keep: bool = False

    @property
    def load(self) -> LiveLoad:
        return LIVE[self.workload.tool]

    @property
    def name(self) -> str:
        return self.target if isinstance(self.target, str) else str(self.target.address)

    def asked_per_s(self, workers: int) -> float | None:
        """What so many workers begin in a second."""
        rate = self.workload.rate
        return None if rate is None else rate * workers

    def __str__(self) -> str:
        rate = self.asked_per_s(self.workers)
        pace = f"{significant(rate)} operations/s" if rate else "as fast as it answers"
        open_to_all = "" if isinstance(self.target, str) else "; passwords travel unencrypted"
        return (
            f"{self.name}: {self.workload.title}, {pace}, by {counted(self.workers, 'worker')} of "
            f"{counted(self.workload.threads, 'connection')}, for {duration(self.seconds)}"
            f"{open_to_all}"
        )


def usual_load(matrix: Matrix, row: Row) -> Workload:
    """What a row is asked for where nobody says what."""
    usual = {load.usual for load in LIVE.values()}
    for workload in fitting_workloads(matrix, [row.system]):
        if workload.id in usual:
            return workload
    raise MatrixError(
        f"the matrix has no usual load that {row.id} answers",
        hint=f"name another with --workload; usual ones are {', '.join(sorted(usual))}",
    )


def live_workload(
    workload: Workload, rate: float | None, connections: int | None, workers: int
) -> Workload:
    """The load of one worker; UsageError for one that cannot be looked at, or not by several."""
    tools, usual = (", ".join(words) for words in (LIVE, (load.usual for load in LIVE.values())))
    hint = f"take one with a `tool` of {tools}, such as {usual}; `dsbisect list workloads` has all"
    if workload.tool not in LIVE:
        raise UsageError(
            f"workload {workload.named!r}: {workload.tool} says nothing while it runs", hint=hint
        )
    if workload.writes and workers > 1:
        raise UsageError(
            f"workload {workload.named!r} writes: several workers would change the same entries",
            hint="take --workers 1, or a workload that only reads",
        )
    load = workload.model_copy(
        update={"scheduled": rate or workload.rate, "threads": connections or workload.threads}
    )
    for parameter, allowed in load.contradictions():
        raise UsageError(f"workload {workload.named!r}: {parameter}: {allowed}", hint=hint)
    return load


def user_binds(users: int, rate: float, connections: int) -> LdaploadWorkload:
    """All that a server of someone else is asked: so many users connect, bind and unbind."""
    return LdaploadWorkload(
        id="by-address",
        title=f"binds of {counted(users, 'user')}",
        users=users,
        distinct_users=users,
        threads=connections,
        scheduled=rate,
        requests=(USER_BIND,),
    )


def locust_program() -> str | None:
    """Locust of the lab's own environment, otherwise one on the path."""
    own = Path(sys.executable).with_name(PROGRAM)
    return str(own) if own.exists() else shutil.which(PROGRAM)


def drive_load(request: LoadRequest, engine: Engine, progress: Progress) -> DrivenLoad:
    """Prepare server and workers, drive the load, and say what came of it; also after a Ctrl-C."""
    program = Path(sys.executable).with_name(PROGRAM)
    if not program.exists():  # one elsewhere could not import the lab
        raise ToolMissingError(
            "Locust is not installed",
            hint=install_command("load"),
        )
    loader = load_image(engine, request.matrix, request.workload.tool, progress=progress)
    with (
        _served(request, engine, progress) as (instance, cpus),
        instance.needed(),
        _Crew.of(request, engine, instance, loader, cpus) as crew,
        measuring_alone(progress),
    ):
        progress(str(request))
        before_us = instance.cpu_us()
        result = crew.drive(program, progress)
        after_us = instance.cpu_us()
        objections = [] if instance.alive else ["the server ended during the load"]
    if result is None:
        progress("interrupted: these are the figures so far")
    elif not result.ok:
        objections.append(f"{PROGRAM}: {result.end} ({crew.log})")
    is_known = before_us is not None and after_us is not None
    started = [worker for worker in crew.plan.workers if Path(worker.said).exists()]
    reports = [
        worker_heard(
            request.load,
            worker.name,
            _text(worker),
            worker.said,
            asked_s=request.seconds,
            stopped=result is None,
        )
        for worker in started
    ]
    failed = next((words for figures, _ in reports for words in figures.errors), None)
    if failed and isinstance(request.target, AddressRequest):
        objections.insert(0, f"{request.name}: the first bind that failed ended the load: {failed}")
    return driven_load(
        request.name,
        request.workload.title,
        request.asked_per_s(len(started)),
        reports,
        (after_us or 0) - (before_us or 0) if is_known else None,
        objections,
        interrupted=result is None,
    )


def _text(worker: PlannedWorker) -> str:
    return Path(worker.said).read_text(encoding="utf-8", errors="replace")


@contextmanager
def _served(
    request: LoadRequest, engine: Engine, progress: Progress
) -> Iterator[tuple[Instance, CpuShares]]:
    """The server, and which CPUs are whose."""
    target = request.target
    if isinstance(target, AddressRequest):
        instance = Instance(
            candidate_id=CANDIDATE, endpoint=target.endpoint, network=target.network
        )
        yield instance, CpuShares(server=(), load=available_cpus(), pinned=False)
        return
    supply = RowSupply(engine=engine, matrix=request.matrix, relock=request.relock)
    conditions = LabConditions.on(
        engine,
        matrix=request.matrix,
        settings=request.settings,
        workloads=(request.workload,),
        duet=False,
        keep=request.keep,
    )
    conditions.refuse_unfit(target, supply.system(target))
    golden = supply.golden(target, conditions.seed, progress, keep=request.keep)
    cpus = conditions.way.cpus
    with serve(engine, golden, cpus, keep=request.keep) as instance:
        yield instance, cpus


@dataclass(frozen=True, kw_only=True)
class _Crew:
    """The workers, each in a container of its own, and the plan by which Locust drives them."""

    request: LoadRequest
    plan: LoadPlan
    log: Path

    @classmethod
    @contextmanager
    def of(
        cls,
        request: LoadRequest,
        engine: Engine,
        instance: Instance,
        loader: Image,
        cpus: CpuShares,
    ) -> Iterator[_Crew]:
        name, folder_of = instance.candidate_id, logs_home() / "load"
        pinned = cpus.load if cpus.pinned else ()
        server = instance.home.shared if instance.home else None
        planned: list[PlannedWorker] = []
        with ExitStack() as stack:
            for number in range(1, request.workers + 1):
                folder = stack.enter_context(shared_folder())
                box = stack.enter_context(
                    running(
                        engine,
                        loader.reference,
                        purpose=f"load-{name}-worker-{number}",
                        log=folder_of / f"{name}-worker-{number}.log",
                        options=load_options(instance.network, folder, pinned, server=server),
                        keep=request.keep,
                    )
                )
                planned.append(_planned(request, instance, box, folder, number))
            plan = LoadPlan(
                server=request.name,
                tool=request.workload.tool,
                workers=tuple(planned),
                seconds=request.seconds,
                limit_s=request.seconds + BEGIN_AND_END_S / 2,
                cpus=pinned,
                environment=dict(engine.environment),
                connections=request.workload.threads,
                meter=instance.home.meter if instance.home else None,
            )
            yield cls(request=request, plan=plan, log=folder_of / f"{name}-{PROGRAM}.log")

    def drive(self, program: Path, progress: Progress) -> Completed | None:
        """Locust's whole run; None where a Ctrl-C ended it."""
        users = str(self.request.workers)
        argv = [
            str(program),
            "-f",
            str(LOCUSTFILE),
            "-u",
            users,
            "-r",
            users,
            "--loglevel",
            "WARNING",
            "--exit-code-on-error",
            "0",
        ]
        begin_text = BEGUN
        if self.request.gui:
            port = self.request.port or _free_port()
            argv += ["--autostart", "--web-host", LOOPBACK, "--web-port", str(port)]
            begin_text = (
                f"http://{LOOPBACK}:{port}/ shows it; all ends after "
                f"{duration(self.plan.limit_s)} at most, or by Ctrl-C; a user there is a worker of "
                f"{counted(self.plan.connections, 'connection')}"
            )
        else:
            argv += ["--headless", "--only-summary"]
        with scratch_folder("locust") as folder:
            plan = Path(folder) / "plan.json"
            atomic_write(plan, self.plan.model_dump_json())
            for worker in self.plan.workers:
                Path(worker.said).unlink(missing_ok=True)

            def heard(line: str) -> None:
                if line.startswith(WORKER):
                    progress(line)
                elif line == BEGUN:
                    progress(begin_text)

            try:
                return run(
                    argv,
                    cwd=Path(folder),
                    env={PLAN_VARIABLE: str(plan)},
                    on_line=heard,
                    deadline=Deadline.after(self.plan.limit_s + BEGIN_AND_END_S),
                    log=self.log,
                    keep_bytes=KEPT_BYTES,
                )
            except KeyboardInterrupt:
                return None


def _planned(
    request: LoadRequest, instance: Instance, box: Container, folder: Path, number: int
) -> PlannedWorker:
    """One worker, whose requests come in an order of their own."""
    endpoint, load = instance.endpoint, request.load
    if isinstance(request.target, AddressRequest):
        host = found_host(box, request.target.address)
        endpoint = replace(endpoint, host=host)
    for name, text in load.files(request.workload, endpoint, number).items():
        (folder / name).write_text(text, encoding="utf-8")
    worker = Worker(number=number, seconds=request.seconds, per_second=request.workload.rate)
    argv = load.live_argv(request.workload, endpoint, LOAD_FOLDER, worker)
    inside = ("podman", "exec", box.name, "sh", "-c")
    return PlannedWorker(
        name=f"{WORKER}{number}",
        argv=(*inside, _KNOWN, "sh", *argv),
        stop=(*inside, _STOP),
        said=str(box.log.with_suffix(".txt")),
    )


def _free_port() -> int:
    """One that nobody uses now."""
    with socket.create_server((LOOPBACK, 0)) as listening:
        return int(listening.getsockname()[1])
