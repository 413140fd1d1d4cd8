"""What counts exactly: callgrind the instructions per operation, strace the system calls.

Under callgrind the server runs in valgrind, some fifty times slower, on the golden state that is
measured otherwise too. Blind to locks, to the kernel and to caches, so it never replaces a measured
time. strace counts system calls, among them flushes to disk and waits for other threads, from
outside the container: the server runs as it always does, and slower while strace is attached to it,
so no time is used.
"""

from __future__ import annotations

import re
import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.containers.engine import last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import EngineError, InstanceError
from dsharness.measure.exact_count import (
    IDLE_S,
    Behind,
    CountedRun,
    Counts,
    T,
    counted_load,
    short_run,
)
from dsharness.measure.gate import count_objections
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import FSYNCS, FUTEXES, INSTRUCTIONS, SYSCALLS
from dsharness.measure.sample import Bench, warm_up, write_files
from dsharness.model import FunctionCounts, Workload
from dsharness.process.command import run
from dsharness.process.deadline import Deadline

TOOLS = "/run/dsbisect-tools"  # an image with valgrind, mounted
PIPES = "/tmp/vgdb-pipe"  # noqa: S108 - inside the container
ENVIRONMENT = ("env", "LOGNAME=lab", "USER=lab", "HOST=lab")  # parts of the pipes' names
OUT = "callgrind.out"
DUMPED = f"""
cd /tmp
for dump in {OUT}.*-*; do
    echo "$(grep -m 1 ^thread: "$dump") $(grep -m 1 -E '^(summary|totals):' "$dump")"
done
rm -f {OUT}.*
"""
MOST_BYTES = 512 << 20  # of all threads' dumps
WHOLE = f"cd /tmp && cat {OUT}.*-* && rm -f {OUT}.*"
THREAD = re.compile(r"^thread: (?P<thread>\d+) (?:summary|totals): (?P<count>\d+)$", re.MULTILINE)
# The tools are of another system than the server, which may be older: they need their own loader
# and libraries. What valgrind runs in the server's process needs none.
OWN_LOADER = f"""
loader=$(ls {TOOLS}/lib64/ld-linux-*.so.* {TOOLS}/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
program={TOOLS}/usr/bin/$1
shift
[ ! -e "$program.bin" ] || program=$program.bin
exec "$loader" --library-path "$(echo {TOOLS}/usr/lib/*-linux-gnu)" "$program" "$@"
"""


CALLGRIND = (
    "--tool=callgrind",
    "--instr-atstart=no",
    "--separate-threads=yes",
    f"--callgrind-out-file=/tmp/{OUT}",
)


@dataclass(frozen=True, kw_only=True)
class Valgrind:
    """Runs a server's command under one of its tools: callgrind, which does not count yet."""

    image: str  # that has valgrind
    tool: tuple[str, ...] = CALLGRIND

    def command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        return (
            *ENVIRONMENT,
            f"VALGRIND_LIB={TOOLS}/usr/libexec/valgrind",
            "sh",
            "-c",
            OWN_LOADER,
            "valgrind",
            "valgrind",
            "--error-limit=no",
            f"--vgdb-prefix={PIPES}",
            *self.tool,
            *command,
        )

    def options(self, options: Options) -> Options:
        mount = f"type=image,source={self.image},destination={TOOLS}"
        return replace(options, memory=None, extra=(*options.extra, "--mount", mount))


class Callgrind:
    """Counts the instructions of a server that runs under ``Valgrind``, one thread at a time."""

    kinds: ClassVar[tuple[Metric, ...]] = (INSTRUCTIONS,)
    busier: ClassVar[float] = 10.0
    least: ClassVar[float] = 1e8
    most: ClassVar[int] = 400
    within: ClassVar[str] = "under valgrind"

    def close(self, kind: Metric) -> float:  # noqa: ARG002 - it counts one
        return 0.01

    def begin(self, bench: Bench, workload: Workload) -> None:  # noqa: ARG002 - any workload
        control(bench.instance.container, "instrumentation on")

    def counted(self, bench: Bench, work: Callable[[Behind], T]) -> tuple[T, Counts]:
        box = bench.instance.container
        outcome, seconds = self._dumped(box, work)
        dumps = box.must("sh", "-c", DUMPED, what="read callgrind's count")
        threads = {int(match["thread"]): int(match["count"]) for match in THREAD.finditer(dumps)}
        if not any(threads.values()):
            raise InstanceError("callgrind counted nothing", log=box.log)
        return outcome, {INSTRUCTIONS: CountedRun(threads=threads, seconds=seconds)}

    def by_function(self, bench: Bench, work: Callable[[Behind], T]) -> tuple[T, Mapping[str, int]]:
        """Return the same by function, of all threads together."""
        box = bench.instance.container
        outcome, _ = self._dumped(box, work)
        with scratch_folder("callgrind") as folder:
            dump_file = Path(folder) / "dumps"
            result = box.execute("sh", "-c", WHOLE, into=dump_file, into_bytes=MOST_BYTES)
            if not result.ok:
                raise InstanceError(f"callgrind's dumps: {last_line(result)}", log=box.log)
            with dump_file.open(encoding="utf-8", errors="replace") as lines:
                return outcome, own_counts(lines)

    def _dumped(self, box: Container, work: Callable[[Behind], T]) -> tuple[T, float]:
        control(box, "zero")
        began = time.monotonic()
        outcome = work(())
        control(box, "dump")
        return outcome, time.monotonic() - began

    def rest(self, behind: Behind) -> None:  # noqa: ARG002 - it counts from inside
        time.sleep(IDLE_S)


def control(box: Container, words: str, what: str = "control callgrind") -> None:
    """Tell valgrind's tool something while it runs."""
    box.must(
        *ENVIRONMENT,
        "sh",
        "-c",
        OWN_LOADER,
        "vgdb",
        "vgdb",
        f"--vgdb-prefix={PIPES}",
        "--wait=30",
        *words.split(),
        what=what,
    )


def take_function_counts(bench: Bench, workload: Workload) -> FunctionCounts:
    """What a run of twice as many operations has more in each function, of a server in valgrind."""
    counter, alone = Callgrind(), workload.model_copy(update={"threads": 1})
    write_files(bench, alone, 0)
    counter.begin(bench, alone)
    count = short_run(counter, bench, alone, count_objections)
    short, long = (
        counter.by_function(
            bench, counted_load(bench, alone, size, count_objections, counter.within)
        )[1]
        for size in (count, 2 * count)
    )
    more = {name: (number - short.get(name, 0)) / count for name, number in long.items()}
    return FunctionCounts(
        candidate_id=bench.instance.candidate_id,
        workload_id=workload.id,
        operations=3 * count,
        per_operation={name: number for name, number in more.items() if number >= LEAST_SHOWN},
    )


LEAST_SHOWN = 1.0  # instruction of an operation
# Lines of callgrind's format. A name stands where its number comes first. What a call costs stands
# on the line after it, and is the callee's.
NAMED = re.compile(r"^(?P<called>c?)(?P<what>fn|ob)=\((?P<id>\d+)\)(?: (?P<name>.+))?$")
COST = re.compile(r"^(?:[+-]\d+|\*|\d+|0x[0-9a-f]+) (?P<count>\d+)$")
NAMELESS = re.compile(r"^(?:0x[0-9a-f]+|\?\?\?|\[unknown\])?$")  # of valgrind's tools, of perf
MOST_OF_NAME = 160


def own_counts(lines: Iterable[str]) -> Mapping[str, int]:
    """What each function has itself, of callgrind's dumps; one without a name is its library."""
    counts = Tally[str]()
    names: dict[tuple[str, str], str] = {}
    places = {"fn": "", "ob": ""}
    of_call = False
    for line in lines:
        if match := NAMED.match(line):
            key = match["what"], match["id"]
            names[key] = match["name"] or names.get(key, "")
            if not match["called"]:
                places[match["what"]] = names[key]
        elif cost := COST.match(line):
            counts[_shown(places["fn"], places["ob"])] += 0 if of_call else int(cost["count"])
            of_call = False
        else:
            of_call = line.startswith("calls=")
            if line.startswith("version:"):  # of the next dump, which has its own numbers
                names.clear()
    return counts


def _shown(function: str, library: str) -> str:
    return function_name(re.sub(r"'\d+$", "", function), library)  # of a recursion's depth


def function_name(symbol: str, file: str) -> str:
    """Return a function as it is shown: one without a name is its library."""
    return (f"[{Path(file).name}]" if NAMELESS.match(symbol) else symbol)[:MOST_OF_NAME]


CALL = re.compile(r"^(?P<thread>\d+) +(?P<name>\w+)\(")  # its beginning: it may end lines later
NAMES: Mapping[Metric, frozenset[str]] = {
    FSYNCS: frozenset({"fsync", "fdatasync"}),
    FUTEXES: frozenset({"futex"}),
}
REST_LIMIT_S = 60.0
# Every thread has to be traced before the command starts. A tracer that is ended lets go of them.
TRACED = """
out=$1 pids=$2
shift 2
traced() {
    for pid in $pids; do
        [ -d /proc/$pid ] || return
        free=$(grep -L "^TracerPid:.$tracer\\$" /proc/$pid/task/*/status 2>/dev/null)
        [ -z "$free" ] || return
    done
}
strace -f -q -e trace=all -e raw=all -e signal=none -o "$out" $(printf ' -p %s' $pids) \\
    2>"$out.told" &
tracer=$!
until traced; do
    kill -0 $tracer 2>/dev/null || exit 1
    sleep 0.05
done
: >"$out.traced"
"$@"
status=$?
kill -TERM $tracer
wait $tracer
exit $status
"""


class Strace:
    """Counts the system calls of a server's processes."""

    kinds: ClassVar[tuple[Metric, ...]] = (SYSCALLS, FSYNCS, FUTEXES)
    busier: ClassVar[float] = 2.0  # a thread that waits for requests also looks up now and then
    least: ClassVar[float] = 1e6  # the first run has mostly those of idle threads: take the most
    # A server may let a thread keep a connection that was busy for five seconds (turbo mode), which
    # is another way to serve it: a run ends before.
    most: ClassVar[int] = 100
    within: ClassVar[str] = "under strace"

    def close(self, kind: Metric) -> float:
        """Return whether a thread has to wait for a lock is chance."""
        return 0.1 if kind == FUTEXES else 0.02

    def begin(self, bench: Bench, workload: Workload) -> None:
        warm_up(bench, workload)

    def counted(self, bench: Bench, work: Callable[[Behind], T]) -> tuple[T, Counts]:
        server = bench.instance.processes()
        if server is None:
            raise InstanceError("the server has ended", log=bench.instance.container.log)
        with scratch_folder("strace") as folder:
            out = Path(folder) / "calls"
            pids = " ".join(map(str, server.pids))
            began = time.monotonic()
            outcome = work(("sh", "-c", TRACED, "strace", str(out), pids))
            seconds = time.monotonic() - began
            if not out.with_suffix(".traced").exists():
                if not bench.instance.alive:
                    raise InstanceError("the server has ended", log=bench.instance.container.log)
                raise not_traced(out.with_suffix(".told"))
            with out.open(encoding="ascii", errors="replace") as lines:
                return outcome, counts_of(lines, seconds)

    def rest(self, behind: Behind) -> None:
        deadline = Deadline.after(IDLE_S + REST_LIMIT_S)
        run([*behind, "sleep", str(IDLE_S)], deadline=deadline)


def counts_of(lines: Iterable[str], seconds: float) -> Counts:
    """Return the calls of each thread that began in these lines of strace."""
    tallies = {kind: Tally[int]() for kind in Strace.kinds}
    for line in lines:
        if match := CALL.match(line):
            thread = int(match["thread"])
            for kind, calls in tallies.items():
                calls[thread] += kind not in NAMES or match["name"] in NAMES[kind]
    return {kind: CountedRun(threads=calls, seconds=seconds) for kind, calls in tallies.items()}


def not_traced(output_file: Path) -> EngineError:
    """Return an error of the machine, not of a candidate."""
    output = (
        output_file.read_text(encoding="utf-8", errors="replace").strip()
        if output_file.exists()
        else ""
    )
    return EngineError(
        "strace could not watch the server: "
        f"{output.splitlines()[0] if output else 'it said nothing'}",
        hint="`dsbisect doctor` says whether processes may be traced here",
    )
