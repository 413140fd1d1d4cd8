"""An import that is measured: the server's own program replaces all entries while it is stopped.

What it costs is what its container uses, where nothing else runs meanwhile. Afterwards the server
starts again, and a search counts what it holds: an import that lost entries is no success.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from dsharness.containers.container import Container, Options
from dsharness.errors import CandidateError, WorkloadError
from dsharness.loads import LoadReport
from dsharness.measure.gate import Gate, RunEvidence, objections
from dsharness.measure.instance import Instance, Metered, metered
from dsharness.measure.sample import Bench, Run, sample_of, time_now
from dsharness.model import ImportWorkload, Sample, Turn
from dsharness.process.command import Completed
from dsharness.systems import System
from dsharness.systems.readiness import START, wait_until_ready
from dsharness.systems.system import Importer, importer

FILE = "/tmp/imported.ldif"  # noqa: S108 - in the server's container
# The command is "$@". When it begins and ends, in seconds since boot: podman's start is left out.
TIMED = """
read -r begun rest </proc/uptime; "$@"; status=$?; read -r ended rest </proc/uptime
echo; echo "$begun $ended"; exit "$status"
"""
TIMES = re.compile(r"^(\d+\.\d+) (\d+\.\d+)\s*\Z", re.MULTILINE)


class Stoppable:
    """Runs a server so that its container outlives it."""

    def command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        return ("sh", "-c", f"{START}\nexec sleep infinity", "sh", *command)

    def options(self, options: Options) -> Options:
        return options


def take_import(bench: Bench, turn: Turn, gate: Gate = objections) -> Sample:
    """Import once. Never raises for what went wrong: the sample says why."""
    return sample_of(bench, turn, [_run(bench, turn)], gate)


def _run(bench: Bench, turn: Turn) -> Run:
    instance, box, load = bench.instance, bench.instance.container, turn.workload
    if not isinstance(load, ImportWorkload):
        raise WorkloadError(f"{load.id} imports nothing")
    system = _importing(instance.system)
    started_at, before = time_now(), instance.look()
    limit_s, metering = 0.0, Metered(given=LoadReport())
    wrong = tuple(instance.objections(before) if before else ())
    try:
        limit_s = system.bring(box, load.users, FILE)
        instance.system.stop(box)
        work = partial(_import, box, system, limit_s)
        metering = metered(instance, bench.cpus, lambda: bench.paused, work)
        if metering.given.exit_status == 0:
            total = _counted(instance)
            metering = replace(metering, given=replace(metering.given, total=total))
    except CandidateError as error:
        wrong = (*wrong, error.message.splitlines()[0])
    state = box.state()
    evidence = RunEvidence(
        operations=load.users,
        threads=1,
        report=metering.given,
        server_alive=state.running,
        overfilled=instance.overfilled(),
        server_cpu_us=metering.server_cpu_us,
        of_system=wrong if before else None,
        conditions=replace(metering.conditions, killed="the server" if state.killed else None),
    )
    return Run(
        started_at=started_at,
        report=metering.given,
        look=before,
        evidence=evidence,
        calibrator_us=metering.calibrator_us,
        steal_pct=metering.steal_pct,
        taken_pct=metering.taken_pct(0.0),  # what loads is in the server's container
        server_waited_s=metering.waited_s,
        usage=metering.usage,
        limit_s=limit_s,
        load_cpus=len(bench.cpus.load),
    )


def _import(box: Container, system: Importer, limit_s: float) -> LoadReport:
    command = system.import_command(FILE)
    return import_report(box.execute("sh", "-c", TIMED, "sh", *command, limit_s=limit_s))


def import_report(result: Completed) -> LoadReport:
    """Return how it ended, and how long it was at work; nothing says yet how much it imported."""
    if result.timed_out:
        return LoadReport(expired=True)
    match = TIMES.search(result.stdout)
    active_s = float(match[2]) - float(match[1]) if match else None
    return LoadReport(active_s=active_s, exit_status=result.status, verified=True)


def _counted(instance: Instance) -> int:
    """Return the users that the server finds when it has started again."""
    home = instance.own
    home.system.start(home.container)
    endpoint = wait_until_ready(home.container, home.shared, home.system)
    return _importing(home.system).count_users(endpoint)


def _importing(system: System) -> Importer:
    found_importer = importer(system)
    if found_importer is None:
        raise WorkloadError("it has no import that could be measured")
    return found_importer
