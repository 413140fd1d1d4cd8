"""The locustfile of `dsbisect measure load`: each user of Locust's is a worker of the lab's load.

A user starts its worker's program and gives Locust what that says each second. Locust shows it;
the verdict is made of what the program said, which is kept in a file.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import ClassVar

import gevent
from flask import Flask, Response, abort, request
from locust import User, events, task
from locust.env import Environment
from locust.exception import StopUser
from locust.web import WebUI

from dsbisect.load_study import BEGUN, LOOPBACK, PLAN_VARIABLE, LoadPlan, PlannedWorker
from dsharness.loads import LIVE, LoadReport
from dsharness.loads.load_driver import LiveSeconds
from dsharness.model import Latencies
from dsharness.process.command import Completed, run
from dsharness.process.deadline import Deadline
from dsproducts import assemble
from dsresults.compare.driven_load import (
    PERCENTILES,
    STOPPED,
    KindFigures,
    is_bound,
    is_whole,
    kind_figures,
)
from dsresults.number_text import counted, significant, whole

assemble()  # Locust started this

TAB = "Exact times"
KEPT_BYTES = 4 << 20  # of what a worker says, in memory: its last words have a line for each time
PLAN = LoadPlan.model_validate_json(Path(os.environ[PLAN_VARIABLE]).read_text(encoding="utf-8"))
END = time.monotonic() + PLAN.limit_s
if PLAN.cpus:
    os.sched_setaffinity(0, PLAN.cpus)  # never on the server's


class WorkerUser(User):
    """One worker. There are so many as were planned, however many the page asks for."""

    host = PLAN.server  # the page shows it
    seen: ClassVar[dict[str, Latencies]] = {}  # of all workers since the start, by kind
    free: ClassVar[list[PlannedWorker]] = list(PLAN.workers)
    whole: ClassVar[int] = 0
    latest: ClassVar[dict[str, LoadReport]] = {}  # second of each worker

    @task
    def drive(self) -> None:
        """Drive it to its end; one that ends before its time ends the load."""
        if not self.free:
            raise StopUser
        worker = self.free.pop(0)
        try:
            result = self._run(worker)
        except BaseException:  # the page's button, or the end of all
            note(worker, STOPPED)
            run(worker.stop, env=PLAN.environment, deadline=Deadline.after(10))
            raise
        finally:
            self.free.append(worker)
        WorkerUser.whole += 1
        if not is_whole(LIVE[PLAN.tool].parse(result.stdout), PLAN.seconds):
            note(worker, result.end)
            say(f"{worker.name} ended before its time: so does the load")
            quit_all(self.environment)
        elif WorkerUser.whole >= len(PLAN.workers):
            quit_all(self.environment)
        raise StopUser

    def _run(self, worker: PlannedWorker) -> Completed:
        seconds = LiveSeconds(LIVE[PLAN.tool])
        with Path(worker.said).open("w", encoding="utf-8", buffering=1) as output:

            def hear(line: str) -> None:
                output.write(f"{line}\n")
                second = seconds.hear(line)
                if second is not None:
                    WorkerUser.latest[worker.name] = second
                    show(self.environment, second)

            return run(
                worker.argv,
                env=PLAN.environment,
                on_line=hear,
                keep_bytes=KEPT_BYTES,
                deadline=Deadline.after(END - time.monotonic()),
            )


def say(words: str) -> None:
    """To whoever started Locust."""
    sys.stdout.write(f"{words}\n")
    sys.stdout.flush()


def note(worker: PlannedWorker, words: str) -> None:
    """Add what the worker itself cannot say."""
    with Path(worker.said).open("a", encoding="utf-8") as output:
        output.write(f"{words}\n")


def show(environment: Environment, second: LoadReport) -> None:
    """Tell Locust of each operation of a second."""
    fire = environment.events.request.fire
    for kind, latencies in second.latencies.items():
        before = WorkerUser.seen.get(kind)
        WorkerUser.seen[kind] = Latencies.merged([before, latencies]) if before else latencies
        for time_us, count in latencies.counts.items():
            for _ in range(count):
                fire(
                    request_type=PLAN.tool,
                    name=kind,
                    response_time=time_us / 1000,
                    response_length=0,
                    exception=None,
                    context={},
                )
        gevent.sleep(0)  # for the page
    for words, count in second.errors.items():
        for _ in range(count):
            fire(
                request_type=PLAN.tool,
                name="failed",
                response_time=0,
                response_length=0,
                exception=words,
                context={},
            )


def quit_all(environment: Environment) -> None:
    """End Locust, its page too; from outside of the user that asks for it."""

    def quit_now() -> None:
        if environment.runner:
            environment.runner.quit()
        if environment.web_ui:
            environment.web_ui.stop()

    gevent.spawn(quit_now)


@events.init.add_listener
def bound(environment: Environment, **_: object) -> None:
    """Whatever is done on the page: at the end of its time all ends."""
    gevent.spawn_later(PLAN.limit_s, quit_all, environment)
    if environment.web_ui and environment.web_ui.app:
        refuse_strangers(environment.web_ui, environment.web_ui.app)
        add_tab(environment.web_ui, environment.web_ui.app)


def refuse_strangers(page: WebUI, app: Flask) -> None:
    """Locust obeys whoever asks; here only its own page does, and programs of this machine.

    A page of somebody else's may lead a browser here, by this address or by a name that leads to
    it. A browser says so: by the name that it was given (Host), by where the page came from
    (Origin, Referer), or that it came from elsewhere (Sec-Fetch-Site).
    """
    hosts = [f"{name}:{page.port}" for name in (page.host, LOOPBACK, "localhost")]
    origins = [f"http://{host}" for host in hosts]

    @app.before_request
    def refuse_stranger() -> None:
        headers = request.headers
        referrer = headers.get("Referer")
        is_own = (
            headers.get("Host") in hosts
            and all(origin in origins for origin in headers.getlist("Origin"))
            and (not referrer or referrer.startswith(tuple(f"{origin}/" for origin in origins)))
            and headers.get("Sec-Fetch-Site", "none") in {"same-origin", "none"}
        )
        if not is_own:
            abort(403)


def add_tab(page: WebUI, app: Flask) -> None:
    """Locust rounds to milliseconds, in which many servers answer: the times as they are."""
    columns = [
        "kind",
        "operations",
        *(f"p{percentile:g} (ms)" for percentile in PERCENTILES),
        "max (ms)",
    ]
    structure = [{"key": column, "title": column} for column in columns]
    of_cpu = [{"key": column, "title": column} for column in CPU_COLUMNS]
    tables = {TAB: structure, CPU_TAB: of_cpu}
    page.template_args["extended_tabs"] = [{"title": name, "key": name} for name in tables]
    page.template_args["extended_tables"] = [
        {"key": name, "structure": columns} for name, columns in tables.items()
    ]
    server = ServerCpu()

    @app.after_request
    def with_times(response: Response) -> Response:
        if request.path == "/stats/requests" and response.is_json:
            all_figures = [
                kind_figures(kind, latencies) for kind, latencies in WorkerUser.seen.items()
            ]
            lines = [dict(zip(columns, _cells(figures), strict=True)) for figures in all_figures]
            stats = {TAB: lines, CPU_TAB: cpu_lines(server)}
            extended = [{"key": name, "data": data} for name, data in stats.items()]
            document = {**response.get_json(), "extended_stats": extended}
            response.set_data(json.dumps(document))
        return response


def _cells(figures: KindFigures) -> list[str]:
    times_us = (*figures.percentiles_us.values(), figures.max_us)
    return [
        figures.kind,
        whole(figures.operations),
        *(significant(time_us / 1000) for time_us in times_us),
    ]


CPU_TAB, CPU_COLUMNS = "CPU", ("who", "CPUs busy", "what it says")


class ServerCpu:
    """How many CPUs the server keeps busy, from one look to the next."""

    def __init__(self) -> None:
        self._before = self._look()

    def busy(self) -> float | None:
        """None for a server that is not the lab's own, or has ended."""
        before, now = self._before, self._look()
        self._before = now
        if before is None or now is None or now[0] <= before[0]:
            return None
        return (now[1] - before[1]) / 1e6 / (now[0] - before[0])

    def _look(self) -> tuple[float, float] | None:
        try:
            return None if PLAN.meter is None else (time.monotonic(), PLAN.meter.used_us())
        except OSError:
            return None


def cpu_lines(server: ServerCpu) -> list[dict[str, str]]:
    """The server's and each worker's last second; whether the load is the limit."""
    busy = server.busy()
    rows = [("server", "not known" if busy is None else significant(busy), PLAN.server)]
    for name, second in WorkerUser.latest.items():
        active_s = second.active_s or 1.0
        used = (second.client_cpu_us or 0.0) / 1e6 / active_s
        words = f"a user of this page: {counted(PLAN.connections, 'connection')}"
        rows.append(
            (name, significant(used), "the load is the limit" if is_bound(second) else words)
        )
    return [dict(zip(CPU_COLUMNS, row, strict=True)) for row in rows]


@events.test_start.add_listener
def begin(**_: object) -> None:
    """The figures are those of the last start."""
    WorkerUser.whole = 0
    WorkerUser.seen.clear()
    WorkerUser.latest.clear()
    say(BEGUN)
    for worker in PLAN.workers:
        Path(worker.said).unlink(missing_ok=True)
