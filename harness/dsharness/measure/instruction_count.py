"""Instructions per operation, counted by callgrind: the same on a busy machine as on a quiet one.

The server runs in valgrind, some fifty times slower, on the golden state that is measured
otherwise too. Blind to locks, to the kernel and to caches, so it never replaces a measured time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from dsharness.containers.container import Container, Options
from dsharness.errors import CandidateError, InstanceError, WorkloadError
from dsharness.loads import Operations
from dsharness.measure.gate import Gate, RunEvidence, count_objections
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.measure.sample import Bench, execute_load, write_files
from dsharness.model import Measurement, Sample, Turn, Workload

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
THREAD = re.compile(r"^thread: (?P<thread>\d+) (?:summary|totals): (?P<count>\d+)$", re.MULTILINE)
# The tools are of another system than the server: they need their own loader and libraries.
OWN_LOADER = f"""
loader=$(ls {TOOLS}/lib64/ld-linux-*.so.* {TOOLS}/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
exec "$loader" --library-path "$(echo {TOOLS}/usr/lib/*-linux-gnu)" {TOOLS}/usr/bin/vgdb "$@"
"""
IDLE_S = 6.0
BUSIER = 10.0  # times, under load, than without: then a thread works for the operations
PAIR_S = 12.0  # that a short and a long run should take together
MOST, FEWEST = 400, 2  # operations of the short run
FEW = 16  # operations that tell how long one takes, unless a single one has so many:
LEAST = 1e8  # instructions of a short run
AGREE = 0.01  # two differences that are so close are of the operations alone
MOST_PAIRS = 6
LIMIT_S = 300.0


@dataclass(frozen=True, kw_only=True)
class Valgrind:
    """Runs a server's command under callgrind, which does not count yet."""

    image: str  # that has valgrind

    def command(self, command: tuple[str, ...]) -> tuple[str, ...]:
        return (
            *ENVIRONMENT, f"VALGRIND_LIB={TOOLS}/usr/libexec/valgrind",
            f"{TOOLS}/usr/bin/valgrind",
            "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes",
            "--error-limit=no",
            f"--vgdb-prefix={PIPES}", f"--callgrind-out-file=/tmp/{OUT}",
            *command,
        )  # fmt: skip

    def options(self, options: Options) -> Options:
        mount = f"type=image,source={self.image},destination={TOOLS}"
        return replace(options, memory=None, extra=(*options.extra, "--mount", mount))


def take_count(at: Bench, turn: Turn, gate: Gate = count_objections) -> Sample:
    """A sample with this one metric, of a server that runs under ``Valgrind``.

    The difference of two runs, one twice as long: what a run costs apart from its operations
    cancels out. This is done until two such differences agree. Threads that work as much without
    operations are the server's own and count nothing. Valgrind runs one thread at a time, so one
    connection asks.
    """
    alone = turn.workload.model_copy(update={"threads": 1})
    write_files(at, alone, turn.number)
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    invalid: tuple[str, ...] = ()
    metrics: dict[str, Measurement] = {}
    operations = 0
    try:
        each, operations = _count(at, alone, gate)
        metrics = {INSTRUCTIONS.name: INSTRUCTIONS.measured(each)}
    except CandidateError as error:
        invalid = (error.message.splitlines()[0],)
    golden = at.instance.own.golden
    return Sample(
        id=turn.sample_id(golden.image.candidate_id),
        campaign_id=turn.campaign_id,
        candidate_id=golden.image.candidate_id,
        settings_id=golden.seed.settings.id,
        workload_id=turn.workload.id,
        image_key=golden.image.key,
        turn=turn.number,
        attempt=turn.attempt,
        started_at=started_at,
        duration_s=0.0,
        operations=operations,
        metrics=metrics,
        machine=at.machine,
        calibrator_us=None,
        steal_pct=0.0,
        errors=len(invalid),
        per_second=(),
        invalid=invalid,
        workload=turn.workload,
        bench=at.facts,
        log=str(at.instance.container.log),
    )


def _count(at: Bench, alone: Workload, gate: Gate) -> tuple[float, int]:
    """Instructions of an operation, and the operations counted."""
    _command(at.instance.container, "instrumentation on")
    count = _short_run(at, alone, gate)
    idle = _idle(at)
    each: list[float] = []
    while (found := agreed(each)) is None:
        if len(each) == MOST_PAIRS:
            raise WorkloadError(
                f"{alone.id} under valgrind: no two counts agree: "
                f"{', '.join(f'{one:,.0f}' for one in each)} instructions per operation",
                hint="the server does something else meanwhile; see its log",
                log=at.instance.container.log,
            )
        short, long = (_counted(at, alone, size, gate) for size in (count, 2 * count))
        each.append(difference(short, long, idle) / count)
    return found, 3 * count * len(each)


def _short_run(at: Bench, alone: Workload, gate: Gate) -> int:
    """How many operations; the first ones also warm the server up."""
    run, count = _counted(at, alone, 1, gate), 1
    if sum(run.threads.values()) < LEAST:
        run, count = _counted(at, alone, FEW, gate), FEW
    return operations_of(run.seconds / count, sum(run.threads.values()) / count)


def difference(short: CountedRun, long: CountedRun, idle: CountedRun) -> int:
    """Instructions that the longer run took more, in threads that work for the operations."""
    return sum(
        count - short.threads.get(thread, 0)
        for thread, count in long.threads.items()
        if count * idle.seconds > BUSIER * idle.threads.get(thread, 0) * long.seconds
    )


def agreed(each: Sequence[float]) -> float | None:
    """The mean of the two that are closest, if they are close.

    A thread also does more than its operations once in a while: it starts, or asks for names for
    the first time. A difference that holds such work has no other like it.
    """
    pairs = list(pairwise(sorted(each)))
    if not pairs:
        return None
    low, high = min(pairs, key=lambda pair: pair[1] - pair[0])
    return (low + high) / 2 if low > 0 and high <= low * (1 + AGREE) else None


def _idle(at: Bench) -> CountedRun:
    """What the server does without any operation."""
    box = at.instance.container
    _command(box, "zero")
    began = time.monotonic()
    time.sleep(IDLE_S)
    return _dumped(box, began)


def operations_of(operation_s: float, instructions: float) -> int:
    """The operations of the shorter run, if one takes so long and so many instructions.

    Too few would drown in other work.
    """
    in_time = PAIR_S / 3 / max(operation_s, 1e-3)
    return round(min(MOST, max(FEWEST, in_time, LEAST / max(instructions, 1.0))))


@dataclass(frozen=True, kw_only=True)
class CountedRun:
    """So many instructions of each thread in so long."""

    threads: Mapping[int, int]
    seconds: float


def _counted(at: Bench, workload: Workload, operations: int, gate: Gate) -> CountedRun:
    box = at.instance.container
    _command(box, "zero")
    began = time.monotonic()
    size = Operations(per_thread=operations, limit_s=LIMIT_S)
    report = execute_load(at, workload, size)
    for why in gate(RunEvidence(operations=operations, threads=1, report=report)):
        raise WorkloadError(f"{workload.id} under valgrind: {why}", log=at.load.log)
    return _dumped(box, began)


def _command(box: Container, words: str) -> None:
    box.must(
        *ENVIRONMENT, "sh", "-c", OWN_LOADER, "vgdb", f"--vgdb-prefix={PIPES}", "--wait=30",
        *words.split(),
        what="control callgrind",
    )  # fmt: skip


def _dumped(box: Container, began: float) -> CountedRun:
    _command(box, "dump")
    seconds = time.monotonic() - began
    dumps = box.must("sh", "-c", DUMPED, what="read callgrind's count")
    threads = {int(found["thread"]): int(found["count"]) for found in THREAD.finditer(dumps)}
    if not any(threads.values()):
        raise InstanceError("callgrind counted nothing", log=box.log)
    return CountedRun(threads=threads, seconds=seconds)
