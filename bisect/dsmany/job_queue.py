"""The queue of jobs in PostgreSQL: the one module that knows Procrastinate.

A job is a hint to look at the store, never the truth: done twice it changes nothing, and what a
lost one would have done, `reap` does. So no job has a lock, which a dead worker could keep.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import Connection, text

from dsharness.errors import StoreError, UsageError
from dsharness.extras import install_command
from dsharness.model import Turn
from dsresults.store import Store
from dsresults.store.database import connecting, conninfo
from dsresults.store.location import Location, locate

if TYPE_CHECKING:
    from procrastinate import App

PLANS = "plans"  # the queue of `advance` and `reap`: any worker
SCHEMA_LOCK = 0x6473_6A6F_6273  # "dsjobs" in ASCII
POLL_S = 2.0
CHECK_S = 1.0
LEAVING_S = 5.0
POOL_WAIT_S = 10.0  # for a connection, after half a minute for an answer
STALLED_S = 45.0
EVERY_15_S = "* * * * * */15"  # the sixth column: seconds


class JobHandler(Protocol):
    """What a worker does when a job comes."""

    def advance(self, run_id: str) -> None: ...

    def prepare(self, run_id: str) -> None: ...

    def profile(self, run_id: str) -> None: ...

    def take(self, run_id: str, turn_id: str) -> None: ...

    def reap(self) -> None: ...


def shared_place(url: str) -> Location:
    """Return the place of a database that machines can share; UsageError when it is a file."""
    location = locate(url)
    if location.file is not None:
        raise UsageError(
            f"--on {location}: machines share a PostgreSQL, not a file",
            hint="--on postgresql://USER@HOST/DATABASE",
        )
    return location


@dataclass(frozen=True, kw_only=True)
class JobQueue:
    """Jobs are queued in the caller's transaction: with what they are about, or not at all."""

    location: Location

    @classmethod
    def of(cls, store: Store) -> JobQueue:
        """Return the queue in this store's database; its tables are made when they are missing."""
        queue = cls(location=store.database.location)
        with store.database.writing() as connection:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({SCHEMA_LOCK})"))
            if connection.scalar(text("SELECT to_regclass('procrastinate_jobs')")) is None:
                _driver(connection).execute(queue._app().schema_manager.get_schema())
        return queue

    def advance(self, connection: Connection, run_id: str) -> None:
        self._queue(connection, "advance", PLANS, run=run_id)

    def prepare(self, connection: Connection, run_id: str, machine: str) -> None:
        self._queue(connection, "prepare", _queue_of(machine), run=run_id)

    def profile(self, connection: Connection, run_id: str, machine: str) -> None:
        self._queue(connection, "profile", _queue_of(machine), run=run_id)

    def take(self, connection: Connection, run_id: str, turn: Turn) -> None:
        self._queue(connection, "take", _queue_of(turn.machine), run=run_id, turn=turn.id)

    def waiting(self, connection: Connection, machine: str) -> set[str]:
        """The ids of runs that a machine has yet to prepare or profile, of turns to be taken."""
        query = text(
            "SELECT coalesce(args ->> 'turn', args ->> 'run') FROM procrastinate_jobs"
            " WHERE queue_name = :queue AND status = 'todo'"
        )
        return set(connection.scalars(query, {"queue": _queue_of(machine)}))

    def _queue(self, connection: Connection, task: str, queue: str, **facts: str) -> None:
        app = self._app()
        job = app.configure_task(f"dsbisect.{task}", queue=queue, connection=_driver(connection))
        job.defer(**facts)

    def serve(self, handler: JobHandler, machine: str, check: Callable[[], None]) -> None:
        """Do this machine's jobs one at a time, and plan meanwhile, until ``check`` raises."""
        for name in ("procrastinate", "psycopg.pool"):  # what went wrong, the handler tells
            logging.getLogger(name).setLevel(logging.CRITICAL)
        from procrastinate.exceptions import ConnectorException  # noqa: PLC0415
        from psycopg import OperationalError  # noqa: PLC0415

        try:
            asyncio.run(self._serve(handler, machine, check))
        except (ConnectorException, OperationalError) as error:
            raise StoreError(
                f"the queue in {self.location} cannot be reached", hint="check the database"
            ) from error

    async def _serve(self, handler: JobHandler, machine: str, check: Callable[[], None]) -> None:
        from procrastinate import PsycopgConnector  # noqa: PLC0415

        # What an interruption leaves undone is settled in the store, and nobody has to read of it.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        app = self._app(
            PsycopgConnector(
                conninfo=conninfo(self.location),
                kwargs=connecting(self.location),
                timeout=POOL_WAIT_S,
                min_size=1,
                max_size=6,
            )
        )
        _register(app, handler)
        try:
            async with app.open_async():
                work = [self._worker(app, queue) for queue in (_queue_of(machine), PLANS)]
                await _first_of(_until_refused(check), *work)
        finally:
            await _end(asyncio.all_tasks() - {asyncio.current_task()}, CHECK_S)

    def _worker(self, app: App, queue: str) -> Coroutine[None, None, None]:
        return app.run_worker_async(
            queues=[queue],
            concurrency=1,
            install_signal_handlers=False,
            delete_jobs="always",
            fetch_job_polling_interval=POLL_S,
            shutdown_graceful_timeout=LEAVING_S,
        )

    def _app(self, connector: Any = None) -> App:  # noqa: ANN401 - one of the engine's
        try:
            from procrastinate import App, SyncPsycopgConnector  # noqa: PLC0415
        except ImportError:
            raise StoreError(
                "several machines need the Python package procrastinate",
                hint=install_command("many"),
            ) from None
        return App(connector=connector or SyncPsycopgConnector(conninfo=conninfo(self.location)))


async def _until_refused(check: Callable[[], None]) -> None:
    while True:
        check()
        await asyncio.sleep(CHECK_S)


async def _first_of(*coroutines: Coroutine[None, None, None]) -> None:
    """Wait for the first that ends: a worker does, without an error, when its database dies."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            await task
    finally:
        await _end(tasks, LEAVING_S + CHECK_S)


async def _end(tasks: Iterable[asyncio.Task[Any] | None], again_s: float) -> None:
    """Cancel until they end: a pool that connects swallows the first, and `run` would hang."""
    unfinished = {task for task in tasks if task is not None and not task.done()}
    while unfinished:
        for task in unfinished:
            task.cancel()
        _, unfinished = await asyncio.wait(unfinished, timeout=again_s)


def _register(app: App, handler: JobHandler) -> None:
    from procrastinate import jobs  # noqa: PLC0415

    @app.task(name="dsbisect.advance", queue=PLANS)
    def advance(run: str) -> None:
        handler.advance(run)

    @app.task(name="dsbisect.prepare")
    def prepare(run: str) -> None:
        handler.prepare(run)

    @app.task(name="dsbisect.profile")
    def profile(run: str) -> None:
        handler.profile(run)

    @app.task(name="dsbisect.take")
    def take(run: str, turn: str) -> None:
        handler.take(run, turn)

    # A queueing lock and no lock: only what waits is refused, so a dead one keeps nobody out.
    @app.periodic(cron=EVERY_15_S)
    @app.task(name="dsbisect.reap", queue=PLANS, queueing_lock="reap")
    async def reap(timestamp: int) -> None:
        del timestamp
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_S):
            if job.id is not None:
                await app.job_manager.finish_job_by_id_async(
                    job.id, jobs.Status.FAILED, delete_job=True
                )
        await asyncio.to_thread(handler.reap)

    del advance, prepare, profile, take, reap  # the application has them


def _queue_of(machine: str) -> str:
    return f"machine/{machine}"


def _driver(connection: Connection) -> Any:  # noqa: ANN401 - psycopg's connection
    return connection.connection.driver_connection
