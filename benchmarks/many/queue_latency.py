"""The queue itself with many machines: how soon a job begins, and what connections it needs."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import BaseProcess

from sqlalchemy import text

from benchmarks.many.figure import Figure
from dsharness.model import LdcltWorkload, Turn
from dsmany.job_queue import JobQueue
from dsresults.store import Store

JOBS, APART_S = 100, 0.05


def queue_figures(store: Store, machines: int) -> list[Figure]:
    """Workers of so many machines wait for jobs, in one process of their own."""
    jobs = JobQueue.of(store)
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_serve, args=(jobs, machines, theirs), daemon=True
    )
    process.start()
    try:
        _until_they_listen(store, machines, process)
        queued_s = [_queue(store, jobs, number, machines) for number in range(JOBS)]
        begun_s = [ours.recv() for _ in range(JOBS)]
        with store.database.reading() as connection:
            connections = connection.scalar(
                text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            )
    finally:
        process.kill()
        process.join()
    return [
        Figure.of_times("a job is queued, in a transaction of its own", queued_s),
        Figure.of_times(f"  and begins on its machine, one of {machines}", begun_s, 0.1),
        Figure(what="  connections that their queues keep open", told=f"{connections}"),
    ]


def _serve(jobs: JobQueue, machines: int, pipe: Pipe) -> None:
    class Handler:
        """Tells how late each job begins; its run is when it was queued."""

        def advance(self, run_id: str) -> None: ...

        def prepare(self, run_id: str) -> None: ...

        def profile(self, run_id: str) -> None: ...

        def take(self, run_id: str, turn_id: str) -> None:
            del turn_id
            pipe.send(time.time() - float(run_id))

        def reap(self) -> None: ...

    async def all_of_them() -> None:
        names = [f"q{number:03}" for number in range(machines)]
        await asyncio.gather(*(jobs._serve(Handler(), name, _nothing) for name in names))  # noqa: SLF001

    asyncio.run(all_of_them())


def _nothing() -> None: ...


def _until_they_listen(store: Store, machines: int, process: BaseProcess) -> None:
    """Each machine has two workers: for its turns, and for plans."""
    while True:
        with store.database.reading() as connection:
            workers = connection.scalar(text("SELECT count(*) FROM procrastinate_workers"))
        if workers == 2 * machines:
            return
        if not process.is_alive():
            raise SystemExit("the process with the machines' queues has ended: see above")
        time.sleep(0.2)


def _queue(store: Store, jobs: JobQueue, number: int, machines: int) -> float:
    time.sleep(APART_S)
    turn = Turn(
        campaign_id="c",
        number=number,
        candidates=("a",),
        workload=LdcltWorkload(id="w", title="binds"),
        machine=f"q{number % machines:03}",
    )
    begin = time.perf_counter()
    with store.database.writing() as connection:
        jobs.take(connection, str(time.time()), turn)
    return time.perf_counter() - begin
