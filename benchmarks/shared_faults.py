"""Faults in the middle of searches that two workers share, and what must hold after each.

A fleet here is a PostgreSQL of its own and two worker processes with the real queue, planner and
store; only their labs are made up, and slow enough to be struck in a turn.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

from fleet_of_worlds import CLASS, FACTS, STEP, WorldLab, WorldStudy
from observers import RecordingObserver
from postgresql_cluster import Cluster
from sqlalchemy import text

from dsharness.errors import DiskFullError, UpgradedError
from dsharness.model import FleetMachine, RunState, SharedRun, TurnState
from dsharness.process.deadline import Deadline, wait_until
from dsmany.attached import begin_run
from dsmany.fleet import DEAD_S
from dsmany.job_queue import JobQueue
from dsmany.shared_answers import campaigns_of
from dsmany.worker import FleetWorker
from dsproducts import assemble
from dsresults.store import Store
from dsresults.store.database import VERSION_TABLE

assemble()

PAUSE_S = 8.0
LATE_S = DEAD_S + 10.0
RUN_S = 0.7  # of a simulated lab
UPGRADED_S = 45.0
AGAIN_S = 2.0  # until a worker that was killed is started again


@dataclass(frozen=True, kw_only=True)
class WorldWorkers:
    """Workers whose labs measure a world; each says that it is on a host of its own."""

    url: str
    folder: Path
    study_of: Callable[[str], WorldStudy] | None = None  # another one than that of the faults
    study: WorldStudy = field(default_factory=WorldStudy)
    run_s: float = RUN_S
    enter: Callable[[str], None] = lambda _: None  # where a worker is to run

    def start(self, name: str) -> int:
        ready_file = self.folder / f"there-{name}"
        ready_file.unlink(missing_ok=True)
        pid = os.fork()
        if pid == 0:
            log = (self.folder / f"told-{name}").open("a", buffering=1)
            with log, contextlib.suppress(Exception):
                os.dup2(log.fileno(), 2)
                sys.stdout = sys.stderr = log  # pytest has put others there
                self.enter(name)
                self._serve(name, ready_file)
            os._exit(1)
        wait_until(lambda: ready_file.exists() or None, Deadline.after(30), what=f"worker {name}")
        return pid

    def _struck(self, name: str) -> WorldStudy:
        """In whose lab each run takes a while, and may find the disk full."""

        def measuring() -> None:
            time.sleep(self.run_s)
            if self._full(name).exists():
                raise DiskFullError("no space left", hint="free some")
            moved = self._moved(name).exists()
            lab.facts = {**FACTS, "cpu_model": "Xeon"} if moved else FACTS

        lab = WorldLab(STEP, machine=name, before_sample=measuring)
        return replace(self.study, labs={name: lab}, machine=name)

    def _serve(self, name: str, ready_file: Path) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests
        study = (self.study_of or self._struck)(name)
        machine = FleetMachine(id=name, name=name, class_name=CLASS, since="2026-11-27")
        try:
            with (
                Store.open(self.url) as store,
                patch("dsresults.store.leases.place_id", lambda: name),
                patch("dsmany.fleet.place_id", lambda: name),
            ):
                worker = FleetWorker(
                    machine=machine,
                    engine=None,
                    store=store,
                    study_of=lambda _: study,  # type: ignore[arg-type]
                    observer=RecordingObserver(),
                    tell=print,
                )
                ready_file.touch()
                worker.serve()
        except KeyboardInterrupt:
            os._exit(0)
        except UpgradedError as error:
            print(error)
            os._exit(error.exit_code)
        except BaseException:  # noqa: BLE001 - nothing of the test may run on in here
            traceback.print_exc()
            os._exit(1)

    def _full(self, name: str) -> Path:
        return self.folder / f"full-{name}"

    def _moved(self, name: str) -> Path:
        return self.folder / f"moved-{name}"

    def move(self, name: str) -> Callable[[], None]:
        """To another CPU, as a virtual machine can be while its worker runs."""
        self._moved(name).touch()
        return self._moved(name).unlink

    def fill_disk(self, name: str) -> Callable[[], None]:
        self._full(name).touch()
        return self._full(name).unlink


@dataclass(kw_only=True)
class FaultyFleet:
    """Two workers, a database, and a fault at a time."""

    cluster: Cluster
    database: str
    store: Store
    workers: WorldWorkers
    begin: Callable[[], SharedRun]
    after: str  # the candidate that every search must name
    chance: random.Random
    limit_s: float = 300.0
    longest_s: float = 3.0  # into the search
    pids: dict[str, int] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    samples: int = 0
    wrongs: list[str] = field(default_factory=list)

    def run(self, faults: Sequence[str]) -> None:
        """A search for each fault, which strikes while a turn is under way."""
        for name in ("a", "b"):
            self.pids[name] = self.workers.start(name)
        try:
            for fault in faults:
                self._search(fault)
        finally:
            for pid in self.pids.values():
                end_worker(pid, signal.SIGINT)
        self.wrongs += [f"left: {leftover}" for leftover in self.left()]

    def lines(self) -> Iterator[str]:
        counted = ", ".join(f"{count} {name}" for name, count in sorted(self.done.items()))
        yield f"shared   {self.done.total()} faults ({counted}); {self.samples} samples kept"
        yield from (f"         WRONG: {wrong}" for wrong in self.wrongs)

    def _search(self, fault: str) -> None:
        run, deadline, began_s = self.begin(), Deadline.after(self.limit_s), time.monotonic()
        wait_until(lambda: self._planned(run) or None, deadline, what="a turn")
        time.sleep(self.chance.uniform(0.0, self.longest_s))
        undo = FAULTS[fault](self)
        self.done[fault] += 1
        try:
            wait_until(lambda: self._ended(run), deadline, what=f"the answer after {fault}")
        finally:
            undo()
        wrongs = [f"after {fault}: {wrong}" for wrong in self._checked(run)]
        self.wrongs += wrongs
        took = f"{self.done.total():3} {fault}: {time.monotonic() - began_s:.0f} s"
        print(f"{took}, {'; '.join(wrongs) or 'the same answer'}", flush=True)

    def left(self) -> Iterator[str]:
        """Leases of workers that have ended, and turns that nobody will take."""
        with self.store.database.reading() as connection:
            yield from connection.scalars(text("SELECT 'the lease ' || id FROM leases"))
        yield from (f"the turn {turn.id}" for turn in self.store.planned_turns())

    def _now(self, run: SharedRun) -> SharedRun:
        stored = self.store.get(SharedRun, run.id)
        assert stored is not None
        return stored

    def _planned(self, run: SharedRun) -> bool:
        turns = self.store.planned_turns()
        of_it = {campaign.id for campaign in campaigns_of(self.store, run)}
        return any(turn.campaign_id in of_it for turn in turns)

    def _ended(self, run: SharedRun) -> SharedRun | None:
        current = self._now(run)
        return None if current.state is RunState.RUNNING else current

    def _checked(self, run: SharedRun) -> Iterator[str]:
        """The undisturbed answer, and of each turn that counts one sample of each candidate."""
        current = self._now(run)
        if current.state is not RunState.DONE:
            yield f"the run is {current.state}: {current.why}"
        for campaign in campaigns_of(self.store, run):
            boundary = campaign.boundary
            if boundary is None or boundary.after != self.after or not boundary.found:
                yield f"another answer: {boundary.summary if boundary else 'none'}"
            samples = self.store.samples(campaign_id=campaign.id)
            self.samples += len(samples)
            sample_counts = Counter(
                (sample.turn, sample.attempt, sample.candidate_id) for sample in samples
            )
            for turn in self.store.turns(campaign.id):
                counts = [
                    sample_counts[turn.number, turn.attempt, name] for name in turn.candidates
                ]
                of_it = (turn.number, turn.attempt)
                machines = {x.machine.id for x in samples if (x.turn, x.attempt) == of_it}
                if turn.state is TurnState.DONE and set(counts) != {1}:
                    yield f"turn {turn.number} has {counts} samples of {turn.candidates}"
                if turn.state is TurnState.PLANNED:
                    yield f"turn {turn.number} is still planned"
                if machines - {turn.machine}:
                    yield f"turn {turn.number} is of {machines}"


def _nothing() -> None:
    """What is to be undone of most faults."""


def end_worker(pid: int, number: int) -> None:
    """Send a signal and wait for the end of a child."""
    os.kill(pid, number)
    os.waitpid(pid, 0)


def _victim(fleet: FaultyFleet) -> str:
    """A worker, one with a turn where there is one."""
    with_turn = {turn.machine for turn in fleet.store.planned_turns()}
    names = [name for name in fleet.pids if name in with_turn] or list(fleet.pids)
    return fleet.chance.choice(names)


def killed(fleet: FaultyFleet) -> Callable[[], None]:
    name = _victim(fleet)
    end_worker(fleet.pids[name], signal.SIGKILL)
    time.sleep(AGAIN_S)
    fleet.pids[name] = fleet.workers.start(name)
    return _nothing


def gone(fleet: FaultyFleet) -> Callable[[], None]:
    """Killed, and back only when the other one has the answer."""
    name = _victim(fleet)
    end_worker(fleet.pids[name], signal.SIGKILL)

    def back() -> None:
        fleet.pids[name] = fleet.workers.start(name)

    return back


def all_killed(fleet: FaultyFleet) -> Callable[[], None]:
    for pid in fleet.pids.values():
        end_worker(pid, signal.SIGKILL)
    for name in fleet.pids:
        fleet.pids[name] = fleet.workers.start(name)
    return _nothing


def late(fleet: FaultyFleet) -> Callable[[], None]:
    """Stopped until it counts as dead; then it goes on with a turn that is no longer its own."""
    pid = fleet.pids[_victim(fleet)]
    os.kill(pid, signal.SIGSTOP)
    time.sleep(LATE_S)
    os.kill(pid, signal.SIGCONT)
    time.sleep(3 * RUN_S)  # what it stores too late is stored before all is looked at
    return _nothing


def database_crashed(fleet: FaultyFleet) -> Callable[[], None]:
    fleet.cluster.restart()
    return _nothing


def database_stands_still(fleet: FaultyFleet) -> Callable[[], None]:
    """Every process of it: whoever asks waits, as behind a network that drops all packets."""
    first = int((fleet.cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
    stopped = [first, *map(int, children)]
    for pid in stopped:
        _signalled(pid, signal.SIGSTOP)
    time.sleep(PAUSE_S)
    for pid in reversed(stopped):
        _signalled(pid, signal.SIGCONT)
    return _nothing


def _signalled(pid: int, number: int) -> None:
    """A connection's process may have ended meanwhile."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def connections_cut(fleet: FaultyFleet) -> Callable[[], None]:
    fleet.cluster.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{fleet.database}' AND pid <> pg_backend_pid()"
    )
    return _nothing


def jobs_twice(fleet: FaultyFleet) -> Callable[[], None]:
    """Each job that waits or is done just now comes again."""
    fleet.cluster.execute(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, args) "
        "SELECT queue_name, task_name, args FROM procrastinate_jobs "
        "WHERE task_name <> 'dsbisect.reap'",
        database=fleet.database,
    )
    return _nothing


def planned_by_all(fleet: FaultyFleet) -> Callable[[], None]:
    """Both workers plan all runs at once, again and again."""
    jobs = JobQueue.of(fleet.store)
    running = fleet.store.find(SharedRun, state=RunState.RUNNING)
    with fleet.store.database.writing() as connection:
        for run in [run for run in running for _ in range(10)]:
            jobs.advance(connection, run.id)
    return _nothing


def disk_full(fleet: FaultyFleet) -> Callable[[], None]:
    return fleet.workers.fill_disk(_victim(fleet))


def other_class(fleet: FaultyFleet) -> Callable[[], None]:
    """A machine is no longer of the class that it came with."""
    return fleet.workers.move(_victim(fleet))


def schema_upgraded(fleet: FaultyFleet) -> Callable[[], None]:
    """By a newer program, while both work: both end by themselves, and come as newer ones."""
    ours = fleet.store.database.schema
    _say_schema(fleet, "9999")
    deadline = Deadline.after(UPGRADED_S)
    for name, pid in fleet.pids.items():
        status = wait_until(partial(_status, pid), deadline, what=f"the end of {name}")
        if status != UpgradedError.exit_code:
            fleet.wrongs.append(f"{name} ended with {status} when the schema was upgraded")
    _say_schema(fleet, ours)
    for name in fleet.pids:
        fleet.pids[name] = fleet.workers.start(name)
    return _nothing


def _say_schema(fleet: FaultyFleet, version: str | None) -> None:
    statement = f"UPDATE {VERSION_TABLE} SET version_num = '{version}'"
    fleet.cluster.execute(statement, database=fleet.database)


def _status(pid: int) -> int | None:
    """A child's exit status, None while it runs."""
    ended_pid, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended_pid else None


FAULTS: dict[str, Callable[[FaultyFleet], Callable[[], None]]] = {
    each.__name__: each
    for each in (
        killed,
        gone,
        all_killed,
        late,
        database_crashed,
        database_stands_still,
        connections_cut,
        jobs_twice,
        planned_by_all,
        disk_full,
        other_class,
        schema_upgraded,
    )
}


@contextmanager
def faulty(cluster: Cluster, folder: Path, seed: int) -> Iterator[FaultyFleet]:
    database = cluster.new_database()
    url, numbers = cluster.url(database), itertools.count()
    with Store.open(url) as store:
        yield FaultyFleet(
            cluster=cluster,
            database=database,
            store=store,
            after="d",
            workers=WorldWorkers(url=url, folder=folder),
            chance=random.Random(seed),
            begin=lambda: begin_run(store, {"n": next(numbers)}, machines=2, class_name=""),
        )
