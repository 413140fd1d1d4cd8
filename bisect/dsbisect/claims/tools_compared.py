"""Locust and ldclt at one server, each as fast as it can."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from dsbisect.claims.binds_measured import arm_settings, bind_workload, measure_binds
from dsbisect.claims.claims_lab import DEFAULT, ClaimsLab
from dsbisect.load_study import PROGRAM, locust_program
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import InconclusiveError, InstanceError
from dsharness.extras import install_command
from dsharness.loads import LOADS
from dsharness.machine.machine_lock import measuring_alone
from dsharness.measure.instance import Instance, serve
from dsharness.process.command import run
from dsharness.process.deadline import Deadline
from dsharness.products.published_claims import BindsMeasured, ToolsCompared
from dsharness.systems.ldap import ldap_connection
from dsresults.compare.trial_claims import ToolFigures, ToolRate
from dsresults.number_text import counted

USERS_OF_LOCUST = 16  # greenlets that bind, of all workers together
BEGIN_AND_END_S = 60.0
# Locust's own Python runs it: it needs ldap3 there.
LOCUSTFILE = """
import os
import random
import time

import ldap3
from ldap_connection import connection_to
from locust import User, task

SERVER = ldap3.Server("ldapi://" + os.environ["DSBISECT_SOCKET"], get_info=ldap3.NONE)
with open(os.environ["DSBISECT_USERS"]) as lines:
    USERS = [line.rstrip("\\n").split("\\t") for line in lines]


class Binder(User):
    @task
    def bind(self):
        dn, password = random.choice(USERS)
        begun, error = time.perf_counter(), None
        try:
            connection = connection_to(SERVER, dn, password, limit_s=60, raise_exceptions=True)
            connection.bind()
            connection.unbind()
        except Exception as wrong:
            error = wrong
        took_ms = 1000 * (time.perf_counter() - begun)
        self.environment.events.request.fire(
            request_type="LDAP", name="bind", response_time=took_ms, response_length=0,
            exception=error, context={},
        )
"""


def compare_tools(lab: ClaimsLab, compared: ToolsCompared) -> ToolFigures:
    """ToolFigures without rates where Locust cannot be started."""
    arm = compared.arm
    lab.observer.preparing(arm.row, f"looking for {PROGRAM}")
    program = locust_program()
    if program is None:
        return ToolFigures(
            arm=str(arm), missing=f"there is no program locust: {install_command('load')}"
        )
    binds = BindsMeasured(kind="binds", arms=(arm,), users=(compared.users,), minutes=1)
    measured = measure_binds(lab, binds)
    line = measured.line(arm.name)
    if line is None or line.most is None:
        raise InconclusiveError(measured.why_not(arm.name))
    load = bind_workload(compared.users, compared.users)
    settings = arm_settings(arm, lab.matrix) or DEFAULT
    golden = lab.golden(arm.row, load.content, settings)
    with (
        serve(lab.engine, golden, lab.cpus, keep=lab.keep) as instance,
        instance.needed(),
        scratch_folder("locust") as folder,
    ):
        connections = Path(ldap_connection.__file__)
        files = {
            "binds.py": LOCUSTFILE,
            connections.name: connections.read_text(encoding="utf-8"),
            **LOADS[load.tool].files(load, instance.endpoint, 0),
        }
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        rates = tuple(
            _locust(lab, program, instance, Path(folder), compared.seconds, workers)
            for workers in compared.workers
        )
    return ToolFigures(
        arm=str(arm),
        reference=line.most.rate_per_s,
        rates=rates,
        cpus=measured.server_cpus,
        cpu_us=line.most.cpu_us,
    )


def _locust(
    lab: ClaimsLab, program: str, instance: Instance, folder: Path, seconds: int, workers: int
) -> ToolRate:
    """One run; InconclusiveError where a bind failed, as then the rate is not one of binds."""
    name, log = instance.candidate_id, instance.container.log
    lab.observer.preparing(name, f"{PROGRAM}, {counted(workers, 'worker')}, for {seconds} s")
    several = ["--processes", str(workers)] if workers > 1 else []
    number = str(USERS_OF_LOCUST)
    argv = [
        program,
        "-f",
        str(folder / "binds.py"),
        "--headless",
        "--only-summary",
        "--json",
        "-u",
        number,
        "-r",
        number,
        "-t",
        f"{seconds}s",
        *several,
    ]
    environment = {
        "DSBISECT_SOCKET": str(_socket(instance)),
        "DSBISECT_USERS": str(folder / "users.tsv"),
    }
    with measuring_alone(lambda news: lab.observer.preparing(name, news)):
        deadline = Deadline.after(seconds + BEGIN_AND_END_S)
        result = run(argv, cwd=folder, env=environment, deadline=deadline, log=log)
    rate = locust_rate(result.stdout, workers)
    if rate is None or rate.failures:
        why = f"{rate.failures} binds failed" if rate else "it told no rate"
        raise InconclusiveError(f"{PROGRAM} with {counted(workers, 'worker')}: {why}", log=log)
    return rate


def _socket(instance: Instance) -> Path:
    """The server's own socket: nobody outside of its container reaches its port."""
    for path in instance.own.shared.iterdir():
        if path.is_socket():
            return path
    raise InstanceError(f"{instance.candidate_id} has no socket that Locust could reach")


def locust_rate(output: str, workers: int) -> ToolRate | None:
    """What its JSON says of all binds; None where there is none. Workers print empty lists."""
    for rows in _lists(output):
        try:
            took_s = rows[0]["last_request_timestamp"] - rows[0]["start_time"]
            number, failures = int(rows[0]["num_requests"]), int(rows[0]["num_failures"])
        except (LookupError, TypeError, ValueError):
            continue
        if took_s > 0 and number:
            rate = number / took_s
            return ToolRate(tool="Locust", workers=workers, rate_per_s=rate, failures=failures)
    return None


def _lists(output: str) -> Iterator[list[Any]]:
    """Every JSON list that begins a line."""
    decoder = json.JSONDecoder()
    for begin in (match.start() for match in re.finditer(r"^\[", output, re.MULTILINE)):
        with suppress(ValueError):
            yield decoder.raw_decode(output, begin)[0]
