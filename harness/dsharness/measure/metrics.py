"""What samples are compared by: how it is read of a server, and how a value follows. No I/O here.

All of a metric is in its value: what it reads of the server's processes before and after a load
(``probe``), its unit, which side is better, and its words. One metric decides a search; another may
be its second measure.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from dsharness.errors import UsageError
from dsharness.measure.metric import Metric, Probe, Probed, Processes, Readings, Words
from dsharness.model import DECIDER, Measurement, Workload
from dsharness.yaml_files.problems import suggestion

MIB = 2**20
PAGE_MIB = os.sysconf("SC_PAGE_SIZE") / MIB
STRAY = 0.2  # calls: two more in a run of a hundred operations are a tenth more, and no factor


def resident_bytes(server: Processes) -> float:
    return server.stat(24) * os.sysconf("SC_PAGE_SIZE")


def faults_so_far(server: Processes) -> float:
    """Return how many pages the kernel had to find for it, without reading a disk."""
    return server.stat(10)


def wake_ups(server: Processes) -> float:
    """Sum over all threads that run: one that ended takes its own along."""
    return server.line("voluntary_ctxt_switches", "task/*/status")


def context_switches(server: Processes) -> float:
    """Sum over threads, also those that others put aside."""
    return wake_ups(server) + server.line("nonvoluntary_ctxt_switches", "task/*/status")


def written_bytes(server: Processes) -> float:
    """Sum over all threads, for its disks: what it sends over connections is not in it."""
    return server.line("write_bytes", "io")


def asked_bytes(server: Processes) -> float:
    """Sum over all threads, also what the kernel had at hand; not what comes by recv()."""
    return server.line("rchar", "io")


def open_files(server: Processes) -> float:
    """Return how many files and connections are open."""
    return server.count("fd/*")


def _gained_each(probe: Probe) -> Callable[[Readings], float | None]:
    """Return what a server gained of it per operation."""
    return lambda read: read.each(read.gained.get(probe))


def _each(step: float) -> Callable[[Readings], float | None]:
    """Return what a whole run is counted in steps of, per operation."""
    return lambda readings: readings.each(step)


def _mib(amount: float | None) -> float | None:
    return amount / MIB if amount else None


COST = Metric(
    name=DECIDER,
    of_server=True,
    of_import=True,
    value=lambda read: read.cost,
    quantum=lambda read: read.in_units(read.server_step_us),
    label="CPU time",
    heading="cost",
    title="server CPU per operation, in units of the calibrator",
    unit="calibrator runs",
    witness="rate",
)
RATE = Metric(
    name="rate",
    of_import=True,
    of_pace=True,
    value=lambda read: read.operations / read.active_s if read.active_s else None,
    label="the rate",
    heading="rate",
    title="operations a second",
    unit="1/s",
    smaller_is_better=False,
    of_load=True,
    words=Words(
        worse="answers {} fewer operations a second", better="answers {} more operations a second"
    ),
)
LATENCY = Metric(
    name="latency",
    of_times=True,
    value=lambda read: read.latencies.mean_us if read.latencies else None,
    label="latency",
    heading="latency",
    title="mean time of one operation",
    unit="µs",
    of_load=True,
    words=Words(worse="takes {} longer", better="takes {} less time"),
)
LATENCY_P99 = Metric(
    name="latency-p99",
    of_times=True,
    value=lambda read: read.latencies.at_us(99) if read.latencies else None,
    quantum=lambda read: read.latencies.step_us(99) if read.latencies else None,
    label="the latency of the slowest hundredth",
    heading="p99",
    title="time that 99 of 100 operations do not exceed",
    unit="µs",
    of_load=True,
    words=Words(
        worse="lets the slowest hundredth take {} longer",
        better="lets the slowest hundredth take {} less time",
    ),
)
CPU = Metric(
    name="cpu",
    of_server=True,
    of_import=True,
    value=lambda read: read.each(read.server_us),
    quantum=lambda read: read.each(read.server_step_us),
    label="CPU time",
    heading="CPU/op",
    title="server CPU per operation",
    unit="µs",
    witness="rate",
)
CLIENT_CPU = Metric(
    name="client-cpu",
    of_server=True,
    value=lambda read: read.each(read.client_us),
    label="CPU time of the load",
    heading="load CPU/op",
    title="CPU of the load per operation",
    unit="µs",
    words=Words(worse="costs the load {} more CPU time", better="costs the load {} less CPU time"),
)

MEMORY = Metric(
    name="memory",
    probe=resident_bytes,
    value=lambda read: _mib(read.after.get(resident_bytes)),
    quantum=lambda _: PAGE_MIB,
    label="memory",
    heading="memory",
    title="resident memory of the server after the load",
    unit="MiB",
    words=Words(worse="uses {} more memory", better="uses {} less memory"),
)
MEMORY_AT_REST = Metric(
    name="memory-at-rest",
    probe=resident_bytes,
    of_start=True,
    value=lambda read: _mib(read.at_rest.get(resident_bytes)),
    quantum=lambda _: PAGE_MIB,
    label="memory at rest",
    heading="memory at rest",
    title="resident memory of the server before its first load",
    unit="MiB",
    words=Words(worse="uses {} more memory at rest", better="uses {} less memory at rest"),
)
START_CPU = Metric(
    name="start-cpu",
    of_start=True,
    value=lambda read: read.start_cpu_s,
    quantum=lambda read: read.start_cpu_step_s,
    label="CPU time of the start",
    heading="CPU of start",
    title="CPU time of the server until it answered",
    unit="s",
    words=Words(worse="costs {} more CPU time to start", better="costs {} less CPU time to start"),
)
START_TIME = Metric(
    name="start-time",
    of_start=True,
    of_load=True,
    value=lambda read: read.start_s,
    quantum=lambda read: read.start_step_s,
    label="the time of the start",
    heading="start",
    title="seconds from the server's start to its first answer",
    unit="s",
    words=Words(worse="takes {} longer to start", better="takes {} less time to start"),
)
OPEN_FILES = Metric(
    name="open-files",
    probe=open_files,
    quantum=lambda _: 1.0,
    value=lambda read: read.after.get(open_files),
    label="open files",
    heading="open files",
    title="files and connections that the server has open after the load",
    unit="files",
    words=Words(worse="has {} more files open", better="has {} fewer files open"),
)
GROWTH = Metric(
    name="growth",
    of_server=True,
    of_age=True,
    probe=resident_bytes,
    value=_gained_each(resident_bytes),
    quantum=_each(os.sysconf("SC_PAGE_SIZE")),
    label="growth of memory",
    heading="growth/op",
    title="resident memory that the server gained per operation",
    unit="B",
    floor=64.0,
    counts="bytes",
    words=Words(worse="grows {} more", better="grows {} less"),
)
FAULTS = Metric(
    name="faults",
    of_server=True,
    of_age=True,
    probe=faults_so_far,
    value=_gained_each(faults_so_far),
    quantum=_each(1.0),
    label="page faults",
    heading="faults/op",
    title="page faults of the server per operation, none of which read a disk",
    unit="faults",
    floor=0.01,
    counts="page faults",
    words=Words(worse="has {} more page faults", better="has {} fewer page faults"),
)
SWITCHES = Metric(
    name="context-switches",
    of_server=True,
    probe=context_switches,
    value=_gained_each(context_switches),
    quantum=_each(1.0),
    label="context switches",
    heading="switches/op",
    title="context switches of the server's threads per operation, with those of idle threads",
    unit="switches",
    floor=0.01,
    counts="context switches",
    words=Words(worse="has {} more context switches", better="has {} fewer context switches"),
)
WAKE_UPS = Metric(
    name="wake-ups",
    of_server=True,
    probe=wake_ups,
    value=_gained_each(wake_ups),
    quantum=_each(1.0),
    label="wake-ups",
    heading="wake-ups/op",
    title="times that the server's threads waited per operation, with those of idle threads",
    unit="wake-ups",
    floor=0.01,
    counts="wake-ups",
    words=Words(worse="wakes up {} more", better="wakes up {} less"),
)
WRITTEN = Metric(
    name="written",
    of_server=True,
    probe=written_bytes,
    value=_gained_each(written_bytes),
    quantum=_each(1.0),
    label="bytes written",
    heading="written/op",
    title="bytes that the server wrote for its disks per operation",
    unit="B",
    floor=64.0,
    counts="bytes",
    words=Words(worse="writes {} more bytes", better="writes {} fewer bytes"),
)
DISTURBER_RATE = Metric(
    name="disturber-rate",
    value=lambda read: (
        read.disturbances / read.active_s
        if read.disturbances is not None and read.active_s
        else None
    ),
    label="the rate of the disturbers",
    heading="disturber rate",
    title="answers a second to the disturbers of a load",
    unit="1/s",
    smaller_is_better=False,
    of_load=True,
    words=Words(
        worse="gives disturbers {} fewer answers a second",
        better="gives disturbers {} more answers a second",
    ),
)
INSTRUCTIONS = Metric(
    name="instructions",
    of_server=True,
    value=lambda read: read.each(read.instructions),
    label="instructions",
    heading="instructions/op",
    title="instructions of the server per operation, outside the kernel",
    unit="instructions",
    steady=True,
    words=Words(worse="executes {} more instructions", better="executes {} fewer instructions"),
)

READ = Metric(
    name="read",
    of_server=True,
    probe=asked_bytes,
    value=_gained_each(asked_bytes),
    quantum=_each(1.0),
    label="bytes read",
    heading="read/op",
    title="bytes that the server read from files per operation, also those that need no disk",
    unit="B",
    floor=64.0,
    counts="bytes",
    words=Words(worse="reads {} more bytes", better="reads {} fewer bytes"),
)


def _only_counted(read: Readings) -> float | None:  # noqa: ARG001 - a way of its own counts it
    return None


SYSCALLS = Metric(
    name="syscalls",
    of_server=True,
    exact=True,
    value=_only_counted,
    label="system calls",
    heading="syscalls/op",
    title="system calls of the server per operation, without those of idle threads",
    unit="calls",
    floor=STRAY,
    counts="system calls",
    words=Words(worse="makes {} more system calls", better="makes {} fewer system calls"),
)
FSYNCS = Metric(
    name="fsyncs",
    of_server=True,
    exact=True,
    value=_only_counted,
    label="flushes to disk",
    heading="fsyncs/op",
    title="calls of fsync and fdatasync by the server per operation",
    unit="fsyncs",
    floor=STRAY,
    counts="flushes",
    words=Words(worse="flushes {} more to disk", better="flushes {} less to disk"),
)
FUTEXES = Metric(
    name="futexes",
    of_server=True,
    value=_only_counted,
    label="waits for threads",
    heading="futexes/op",
    title="calls of futex by the server per operation, by threads that wait for or wake others",
    unit="calls",
    floor=0.01,
    counts="calls of futex",
    words=Words(worse="makes {} more calls of futex", better="makes {} fewer calls of futex"),
)

_ALL = (
    COST,
    RATE,
    LATENCY,
    LATENCY_P99,
    CPU,
    CLIENT_CPU,
    MEMORY,
    MEMORY_AT_REST,
    START_CPU,
    START_TIME,
    OPEN_FILES,
    GROWTH,
    FAULTS,
    SWITCHES,
    WAKE_UPS,
    WRITTEN,
    READ,
    DISTURBER_RATE,
    INSTRUCTIONS,
    SYSCALLS,
    FSYNCS,
    FUTEXES,
)
METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
_PROBES: frozenset[Probe] = frozenset(metric.probe for metric in _ALL if metric.probe)


def probed(server: Processes) -> Probed:
    """Return what all metrics read of a server's processes at this moment."""
    read: dict[Probe, float] = {}
    for probe in _PROBES:
        with suppress(OSError):
            read[probe] = probe(server)
    return read


def measured(readings: Readings) -> dict[str, Measurement]:
    """Every metric by its name; what could not be read, or says nothing of the load, is absent."""
    disturbed = readings.disturbances is not None
    values = {
        metric: metric.value(readings) for metric in _ALL if not (disturbed and metric.of_server)
    }
    return {
        metric.name: metric.measured(value, metric.quantum(readings) if metric.quantum else None)
        for metric, value in values.items()
        if value is not None
    }


def bounded(read: Readings) -> dict[str, Measurement]:
    """What is no worse than it is, where more operations or less time was read than there was."""
    telling = {metric.name for metric in _ALL if metric.of_server or metric is RATE}
    return {
        name: value for name, value in measured(read).items() if name in telling and value.value > 0
    }


def find_metric(name: str) -> Metric:
    """Return the metric of that name; UsageError with the nearest one known."""
    if name not in METRICS:
        raise UsageError(
            f"no metric {name!r}.{suggestion(name, METRICS)}",
            hint=f"`dsbisect list metrics` describes them: {', '.join(METRICS)}",
        )
    return METRICS[name]


def refuse_unfit(metric: Metric, workloads: Iterable[Workload]) -> None:
    """Raise UsageError for a workload of which this metric says nothing."""
    for workload in workloads:
        if workload.disturbed and metric.of_server:
            usable = [candidate.name for candidate in _ALL if not candidate.of_server]
            raise UsageError(
                f"{metric.name} says nothing of workload {workload.named!r}: the server also "
                "answers its disturber meanwhile",
                hint=f"--metric {LATENCY_P99.name}, or one of {', '.join(usable)}",
            )
        if workload.stopped and not metric.of_import:
            raise UsageError(
                f"{metric.name} says nothing of workload {workload.named!r}: the server is stopped "
                "while its entries are imported",
                hint=f"one of {', '.join(option.name for option in _ALL if option.of_import)}",
            )
        if workload.tool == "ldclt" and metric.of_times:
            raise UsageError(
                f"{metric.name} says nothing of workload {workload.named!r}: ldclt does not tell "
                "how long an operation took",
                hint=f"--metric {COST.name}, or a workload of ldapload, such as search-as-user",
            )
        if workload.paced and metric.of_pace:
            raise UsageError(
                f"{metric.name} says nothing of workload {workload.named!r}: its operations begin "
                f"{'by a schedule' if workload.rate or workload.share_pct else 'after pauses'}",
                hint=f"--metric {LATENCY_P99.name}, or leave it out",
            )
