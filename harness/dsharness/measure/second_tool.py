"""The same operations by a tool of others, in turn with the lab's own.

UnboundID's searchrate, authrate and modrate, of its SDK for Java, run for whole seconds and say how
many operations were answered in each. What one costs follows from the server's own count, so what
the tool did not count at its end is in both. It explains an answer and decides none; where both
tools disagree, the answer is not sure.
"""

from __future__ import annotations

import csv
from pathlib import Path

from dsharness.errors import WorkloadError
from dsharness.loads.load_driver import run_size
from dsharness.measure.gate import objections
from dsharness.measure.instance import metered
from dsharness.measure.sample import LOAD_FOLDER, Bench, counted, run_load, warm_up, write_files
from dsharness.model import DirectoryOperation, LdcltWorkload, ToolRuns, UserOrder, Workload
from dsharness.process.command import writing
from dsharness.systems.ldap.directory import Users
from dsharness.systems.ldap.directory_system import OwnDirectory

OWN_TOOL = "ldclt"
TOOL_JAR = "/usr/local/share/dsbisect/unboundid-ldapsdk.jar"
PROGRAMS = "com.unboundid.ldap.sdk.examples"
NAMES_FILE = "names.txt"
RUNS, SECONDS, START_S = 4, 4, 30.0
HEADING = "Recent "  # of what was in the last second
COUNTED = 0.1  # by which both counts may differ: the tool counts until its last whole second


def makes(workload: Workload) -> bool:
    """Return whether the tool can make the very operations of this load."""
    return isinstance(workload, LdcltWorkload)


def take_tool_runs(bench: Bench, workload: Workload) -> ToolRuns | None:
    """Return what an operation costs by both; None for loads that the tool cannot make.

    WorkloadError where a run may not be used: it met errors, or two counts disagree.
    """
    endpoint = bench.instance.endpoint
    if not isinstance(workload, LdcltWorkload) or not isinstance(endpoint, OwnDirectory):
        return None
    write_files(bench, workload, 0)
    _write_names(bench.folder / NAMES_FILE, workload, endpoint.users)
    warm_up(bench, workload)
    costs = [(_own(bench, workload), _other(bench, workload, endpoint)) for _ in range(RUNS + 1)]
    own_costs, other_costs = zip(*costs[1:], strict=True)  # the first run of a tool fills caches
    return ToolRuns(
        candidate_id=bench.instance.candidate_id,
        workload_id=workload.id,
        tool=_PROGRAM[workload.operation].lower(),
        own=own_costs,
        other=other_costs,
    )


def _write_names(path: Path, workload: LdcltWorkload, users: Users) -> None:
    """Write DNs of those who bind, names of those who are looked for."""
    numbers = range(1 if workload.order is UserOrder.REPEAT else workload.distinct_users)
    dns = [users.user(number).dn for number in numbers]
    names = [dn.partition(",")[0] for dn in dns]
    lines = names if workload.operation is DirectoryOperation.SEARCH else dns
    with writing(path):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _own(bench: Bench, workload: LdcltWorkload) -> float:
    """Return CPU time per operation by the lab's own tool."""
    run = run_load(bench, workload, run_size(workload, bench.pace.get(workload.id)), bench.cpus)
    if refused := objections(run.evidence):
        raise WorkloadError(f"{workload.id}: {refused[0]}", log=bench.load.log)
    return _cost(bench, workload, run.evidence.server_cpu_us, run.report.total, run.calibrator_us)


def _other(bench: Bench, workload: LdcltWorkload, endpoint: OwnDirectory) -> float:
    """Return the same by the other one."""
    before = bench.instance.look()
    metering = metered(
        bench.instance,
        bench.cpus,
        lambda: bench.paused,
        lambda: bench.load.execute(*argv(workload, endpoint), limit_s=SECONDS + START_S),
    )
    answered, errors = read_rates(metering.given.stdout)
    operations_made = counted(bench.instance, workload.operation, before, bench.instance.look())
    log, tool = bench.load.log, _PROGRAM[workload.operation].lower()
    if errors:
        raise WorkloadError(f"{workload.id}: {tool} met {errors:.0f} errors", log=log)
    if not isinstance(operations_made, int) or not operations_made or not answered:
        raise WorkloadError(f"{workload.id}: {tool} made no operation", log=log)
    if abs(operations_made - answered) > COUNTED * operations_made + workload.threads:
        raise WorkloadError(
            f"{workload.id}: {tool} says {answered:.0f} operations, the server {operations_made}",
            log=log,
        )
    return _cost(bench, workload, metering.server_cpu_us, operations_made, metering.calibrator_us)


def _cost(
    bench: Bench,
    workload: Workload,
    cpu_us: float | None,
    operations: int | None,
    calibrator_us: float | None,
) -> float:
    if not cpu_us or not operations or not calibrator_us:
        raise WorkloadError(
            f"{workload.id}: the server's CPU time could not be read", log=bench.load.log
        )
    return cpu_us / operations / calibrator_us


_PROGRAM = {
    DirectoryOperation.BIND: "AuthRate",
    DirectoryOperation.SEARCH: "SearchRate",
    DirectoryOperation.MODIFY: "ModRate",
}


def argv(workload: LdcltWorkload, endpoint: OwnDirectory) -> list[str]:
    """Return a command that ends by itself; ``timeout`` is for a server that never answers."""
    site, drawn = endpoint.users, f"[file:{LOAD_FOLDER}/{NAMES_FILE}]"
    manager = ["--bindDN", site.manager, "--bindPassword", site.manager_password]
    match workload.operation:
        case DirectoryOperation.BIND:
            arguments = ["--bindOnly", "--baseDN", drawn, "--credentials", site.user_password]
        case DirectoryOperation.SEARCH:
            arguments = [
                *manager,
                "--baseDN",
                site.people,
                "--scope",
                "sub",
                "--filter",
                f"({drawn})",
            ]
        case DirectoryOperation.MODIFY:
            arguments = [
                *manager,
                "--entryDN",
                drawn,
                "--attribute",
                "description",
                "--valueLength",
                "12",
            ]
    return [
        "timeout",
        "--kill-after=5",
        f"{SECONDS + START_S - 5:.0f}",
        "java",
        "-Xmx256m",
        "-XX:+UseSerialGC",
        "-cp",
        TOOL_JAR,
        f"{PROGRAMS}.{_PROGRAM[workload.operation]}",
        "--hostname",
        endpoint.host,
        "--port",
        str(endpoint.port),
        "--numThreads",
        str(workload.threads),
        "--intervalDuration",
        "1",
        "--numIntervals",
        str(SECONDS),
        "--timestampFormat",
        "none",
        "--csv",
        *arguments,
    ]


def read_rates(text: str) -> tuple[float, float]:
    """Return the operations of all whole seconds, and the errors."""
    answered = errors = 0.0
    lines = text[text.find(HEADING) :] if HEADING in text else ""
    for second in csv.DictReader(lines.splitlines()):
        answered += _number(next(iter(second.values())))
        errors += _number(second.get(f"{HEADING}Errors/Sec"))
    return answered, errors


def _number(cell: str | None) -> float:
    """0 for what is no figure: the tool says in words why it ended."""
    try:
        return float(cell or "")
    except ValueError:
        return 0.0
