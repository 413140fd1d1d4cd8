"""What runs of their own tell of a server under a load: they explain an answer, and decide none.

Where its CPU time goes says `perf record` from outside the container, and how long each of its
operations took says its own log, where it can write one.

perf looks at the server so many times a second of its CPU time, by the CPU's cycles or, where the
machine has no counters, by a clock. Call stacks are unwound from copies of the stack's memory
(dwarf), because distributions build without frame pointers. Names come from the symbols that
libraries export, and from servers of debugging symbols where the user names some.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import EngineError, InstanceError, ToolMissingError, UsageError, WorkloadError
from dsharness.loads import Extent, Seconds
from dsharness.loads.load_driver import run_size
from dsharness.machine.hardware_counter import host_counts
from dsharness.measure.exact_counters import function_name
from dsharness.measure.sample import Bench, execute_load, warm_up, write_files
from dsharness.model import CpuProfile, ServerTimes, Workload
from dsharness.model.measured import FRAMES_APART, Frames, path_totals
from dsharness.process.command import run
from dsharness.process.deadline import Deadline
from dsharness.systems.system import TimesLogger

PER_SECOND = 499  # no divisor of what else ticks
STACK_BYTES = 8192  # of which perf copies so much
MOST_SEEN = "2G"  # of all stacks: then it stops to look
LEAST_S = 10
PROBE_S, READ_S = 20.0, 300.0
LEAST_SHARE = 0.001  # of all: what was seen less often is counted for what called it
SEEN, BUILDS = "seen", "builds"
KERNEL = "[kernel.kallsyms]"
# The server wrote it: whatever is wrong with it says something of this server alone.
LOG_ERRORS = (
    UsageError,
    ArithmeticError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
FRAME = re.compile(r"^\s+[0-9a-f]+ (?P<name>.*) \((?P<file>[^()]*(?:\(deleted\))?)\)$")


def check_profiler() -> None:
    """Refuse, before hours of work, what cannot be had on this machine."""
    if shutil.which("perf") is None:
        raise ToolMissingError(
            "perf is not installed: --profile needs it",
            hint="apt-get install linux-perf (Debian), linux-tools-generic (Ubuntu), "
            "or dnf install perf",
        )
    if problem := _refusal():
        raise EngineError(
            f"perf may not look at processes: {problem}",
            hint="run it as root, or leave --profile out; "
            "/proc/sys/kernel/perf_event_paranoid says who may",
        )


@cache
def _refusal() -> str | None:
    """Return what perf says when it may not, on its first line."""
    with scratch_folder("perf") as folder:
        argv = [*record(Path(folder), by_cpu_time()), "--", "true"]
        result = run(argv, deadline=Deadline.after(PROBE_S))
    lines = [line.strip() for line in result.stderr.splitlines()]
    # its first line may be no more than "Error:"
    return None if result.ok else next((line for line in lines if " " in line), result.end)


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What perf saw in one run of a load."""

    operations: int
    cpu_us: float  # of the server meanwhile
    lines: tuple[str, ...]  # as `perf script` prints them


def look(bench: Bench, workload: Workload, options: tuple[str, ...]) -> Looked:
    """Run the load once while perf looks; the server stays until its stacks are read.

    Its turn is 0, so that it asks for what the first turn asks for.
    """
    write_files(bench, workload, 0)
    warm_up(bench, workload)
    server = bench.instance.processes()
    if server is None:
        raise InstanceError("the server has ended", log=bench.instance.container.log)
    pids = ",".join(map(str, sorted(server.pids)))
    with scratch_folder("perf") as folder:
        kept_folder = Path(folder)
        before_us = bench.instance.cpu_us()
        report = execute_load(
            bench,
            workload,
            _extent(bench, workload),
            (*record(kept_folder, options), "--pid", pids, "--"),
        )
        after_us = bench.instance.cpu_us()
        if not (kept_folder / SEEN).exists():
            raise EngineError("perf could not look at the server", log=bench.load.log)
        if not report.total or before_us is None or after_us is None:
            raise WorkloadError(f"{workload.id}: no operation ended while perf looked")
        lines = tuple(script(kept_folder).splitlines())
    return Looked(operations=report.total, cpu_us=after_us - before_us, lines=lines)


def take_profile(bench: Bench, workload: Workload) -> CpuProfile:
    """Return where the CPU time of its operations goes."""
    looked = look(bench, workload, by_cpu_time())
    stacks = folded(stacks_of(looked.lines))
    if not stacks:
        raise EngineError("perf saw nothing of the server", log=bench.load.log)
    return CpuProfile(
        candidate_id=bench.instance.candidate_id,
        workload_id=workload.id,
        event=_event(),
        operations=looked.operations,
        cpu_us_per_op=looked.cpu_us / looked.operations,
        stacks=stacks,
    )


def take_times(bench: Bench, workload: Workload) -> ServerTimes | None:
    """Run the load once while the server writes its log; None for a kind that writes none."""
    system, endpoint = bench.instance.system, bench.instance.endpoint
    if not isinstance(system, TimesLogger):
        return None
    write_files(bench, workload, 0)
    warm_up(bench, workload)
    with scratch_folder("log") as folder, bench.instance.needed():
        log_file = Path(folder) / "log"
        system.start_log(endpoint)
        report = execute_load(bench, workload, _extent(bench, workload))
        system.end_log(bench.instance.container, endpoint, log_file)
        times = logged_times(system, log_file, bench.instance.candidate_id, workload.id)
    if not times.kinds:
        raise WorkloadError(f"{workload.id}: the server's log holds no operation of it")
    return times.also_seen(report.sent or report.latencies)


def logged_times(
    system: TimesLogger, log_file: Path, candidate_id: str, workload_id: str
) -> ServerTimes:
    """Return the times in what a server wrote; InstanceError for whatever is wrong with that."""
    try:
        return system.read_log(log_file, candidate_id=candidate_id, workload_id=workload_id)
    except LOG_ERRORS as error:
        raise InstanceError(
            f"{workload_id}: the log of {candidate_id} cannot be read: {error}",
            hint="the server wrote it; leave --profile out to measure it without",
        ) from error


def _extent(bench: Bench, workload: Workload) -> Extent:
    """Return enough for some thousand stacks; as in samples where more would be another load."""
    if workload.rate is not None or workload.writes:
        return run_size(workload, bench.pace.get(workload.id))
    return Seconds(seconds=max(LEAST_S, math.ceil(workload.duration_s)))


def _event() -> str:
    return "cycles" if host_counts() else "cpu-clock"


def _perf(kept_folder: Path) -> tuple[str, ...]:
    """Let perf keep the files that it looks into in this folder, not in the user's home."""
    return ("perf", "--buildid-dir", str(kept_folder / BUILDS))


def by_cpu_time() -> tuple[str, ...]:
    """Return the options that look so often in a second of CPU time."""
    return ("--event", _event(), "--freq", str(PER_SECOND))


def record(kept_folder: Path, options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that goes before another one, or before its own options."""
    return (
        *_perf(kept_folder),
        "record",
        "--quiet",
        *options,
        "--max-size",
        MOST_SEEN,
        "--call-graph",
        f"dwarf,{STACK_BYTES}",
        "--output",
        str(kept_folder / SEEN),
    )


def script(kept_folder: Path) -> str:
    """Return the stacks that were seen, with the names that are known."""
    add_debug_symbols(kept_folder / SEEN, kept_folder / BUILDS)
    argv = [
        *_perf(kept_folder),
        "script",
        "--input",
        str(kept_folder / SEEN),
        "--no-inline",
        "--fields",
        "comm,ip,sym,dso",
    ]
    result = run(argv, deadline=Deadline.after(READ_S))
    if not result.ok:
        lines = result.stderr.strip().splitlines()
        raise EngineError(f"perf could not read what it saw: {lines[0] if lines else result.end}")
    return result.stdout


SERVERS = "DEBUGINFOD_URLS"  # some distributions set it for everybody
CLIENT = "debuginfod-find"
LIST_S, FETCH_S = 30.0, 180.0  # of all files together: without them it is a profile, too
MOST_BYTES = {"DEBUGINFOD_MAXSIZE": str(2 << 30)}  # of one file
BUILD = re.compile(r"^(?P<id>[0-9a-f]{8,64}) (?P<file>/.+)$")


def add_debug_symbols(record_file: Path, builds: Path) -> None:
    """Put next to the builds that perf kept what the servers know of them."""
    if not os.environ.get(SERVERS) or shutil.which(CLIENT) is None:
        return
    result = run(
        ("perf", "buildid-list", "--with-hits", "--input", str(record_file)),
        deadline=Deadline.after(LIST_S),
    )
    deadline = Deadline.after(FETCH_S)
    for build_id in build_ids(result.stdout.splitlines()):
        symbols = run((CLIENT, "debuginfo", build_id), env=MOST_BYTES, deadline=deadline)
        build_folder = builds / ".build-id" / build_id[:2] / build_id[2:]
        if symbols.ok and build_folder.is_dir():
            shutil.copyfile(symbols.stdout.strip(), build_folder / "debug")


def build_ids(lines: Iterable[str]) -> Iterator[str]:
    """Yield those of files; the kernel's own names need no server."""
    for line in lines:
        if match := BUILD.match(line.strip()):
            yield match["id"]


def stacks_of(lines: Iterable[str]) -> Iterator[Frames]:
    """Yield the stacks in what `perf script` prints, from the root on."""
    return (stack for _, stack in thread_stacks(lines))


def thread_stacks(lines: Iterable[str]) -> Iterator[tuple[str, Frames]]:
    """Yield each with its thread's name: a line for the thread, then the leaf first."""
    thread, stack = "", list[str]()
    for line in lines:
        if match := FRAME.match(line):
            stack.append(_name(match["name"], match["file"]))
            continue
        if stack:
            yield thread, _once_each(stack)
            stack = []
        thread = line.strip() or thread
    if stack:
        yield thread, _once_each(stack)


def _name(symbol: str, file: str) -> str:
    """Return the function, or the library where it has no name."""
    inside = "kernel" if file == KERNEL else file.removesuffix(" (deleted)")
    return function_name(symbol, inside).replace(FRAMES_APART, ",")


def _once_each(leaf_first: Sequence[str]) -> Frames:
    """Return frames from the root on; those of one library that have no names are one."""
    frames = leaf_first[::-1]
    return tuple(
        name
        for number, name in enumerate(frames)
        if not (number and name.startswith("[") and name == frames[number - 1])
    )


def folded(stacks: Iterable[Frames], least_share: float = LEAST_SHARE) -> dict[str, int]:
    """How often each was seen; what is rare is counted for its callers, so that none is lost."""
    counts = Counter(stacks)
    least = sum(counts.values()) * least_share
    within = path_totals(counts)
    shares = Counter[str]()
    for frames, count in counts.items():
        depth = len(frames)
        while depth > 1 and within[frames[:depth]] < least:
            depth -= 1
        shares[FRAMES_APART.join(frames[:depth])] += count
    return dict(shares.most_common())
