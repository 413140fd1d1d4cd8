"""Instructions per operation, counted by callgrind: the same on a busy machine as on a quiet one.

The server runs in valgrind, some fifty times slower, on the golden state that is measured
otherwise too. Blind to locks, to the kernel and to caches, so it never replaces a measured time.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise

from dsharness.containers.container import Container, Options
from dsharness.errors import CandidateError, InstanceError, WorkloadError
from dsharness.loads import Operations
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.measure.sample import Bench, execute_load, write_files
from dsharness.model import Measurement, Sample, Workload

TOOLS = "/run/dsbisect-tools"  # an image with valgrind, mounted
PIPES = "/tmp/vgdb-pipe"  # noqa: S108 - inside the container
ENVIRONMENT = ("env", "LOGNAME=lab", "USER=lab", "HOST=lab")  # parts of the pipes' names
OUT = "callgrind.out"
TOTAL = re.compile(r"^(?:summary|totals): (?P<count>\d+)$", re.MULTILINE)
# The tools are of another system than the server: they need their own loader and libraries.
OWN_LOADER = f"""
loader=$(ls {TOOLS}/lib64/ld-linux-*.so.* {TOOLS}/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
exec "$loader" --library-path "$(echo {TOOLS}/usr/lib/*-linux-gnu)" {TOOLS}/usr/bin/vgdb "$@"
"""
IDLE_S = 6.0
PAIR_S = 12.0  # that a short and a long run should take together
MOST, FEWEST = 1000, 2  # operations of the short run
FEW = 16  # operations that tell how long one takes, unless a single one takes long
LONG_S = 4.0
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
            "--tool=callgrind", "--instr-atstart=no", "--error-limit=no",
            f"--vgdb-prefix={PIPES}", f"--callgrind-out-file=/tmp/{OUT}",
            *command,
        )  # fmt: skip

    def options(self, options: Options) -> Options:
        mount = f"type=image,source={self.image},destination={TOOLS}"
        return replace(options, memory=None, extra=(*options.extra, "--mount", mount))


def take_count(at: Bench, workload: Workload, *, campaign_id: str, turn: int) -> Sample:
    """A sample with this one metric, of a server that runs under ``Valgrind``.

    The difference of two runs, one twice as long: what a run costs apart from its operations
    cancels out. This is done until two such differences agree. Valgrind runs one thread at a
    time, so one connection asks.
    """
    alone = workload.model_copy(update={"threads": 1})
    write_files(at, alone, turn)
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    invalid: tuple[str, ...] = ()
    metrics: dict[str, Measurement] = {}
    operations = 0
    try:
        each, operations = _count(at, alone)
        metrics = {INSTRUCTIONS.name: INSTRUCTIONS.measured(each)}
    except CandidateError as error:
        invalid = (error.message.splitlines()[0],)
    golden = at.instance.golden
    return Sample(
        id=str(uuid.uuid4()),
        campaign_id=campaign_id,
        candidate_id=golden.image.candidate_id,
        settings_id=golden.seed.settings.id,
        workload_id=workload.id,
        image_key=golden.image.key,
        turn=turn,
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
        workload=workload,
        bench=at.facts,
        log=str(at.instance.container.log),
    )


def _count(at: Bench, alone: Workload) -> tuple[float, int]:
    """Instructions of an operation, and the operations counted."""
    _command(at.instance.container, "instrumentation on")
    count = operations_of(_operation_s(at, alone))
    idle_per_s = _idle(at)
    each: list[float] = []
    while (found := agreed(each)) is None:
        if len(each) == MOST_PAIRS:
            raise WorkloadError(
                f"{alone.id} under valgrind: no two counts agree: "
                f"{', '.join(f'{one:,.0f}' for one in each)} instructions per operation",
                hint="the server does something else meanwhile; see its log",
                log=at.instance.container.log,
            )
        each.append(_difference(at, alone, count, idle_per_s))
    return found, 3 * count * len(each)


def _operation_s(at: Bench, alone: Workload) -> float:
    """About; the first also warms the server up."""
    first = _counted(at, alone, 1)
    if first.seconds > LONG_S:
        return first.seconds
    return (_counted(at, alone, FEW).seconds - first.seconds) / (FEW - 1)


def _difference(at: Bench, alone: Workload, count: int, idle_per_s: float) -> float:
    """Instructions of an operation, from two runs, one twice as long."""
    short, long = (_counted(at, alone, size) for size in (count, 2 * count))
    idle = idle_per_s * (long.seconds - short.seconds)
    return (long.instructions - short.instructions - idle) / count


def agreed(each: Sequence[float]) -> float | None:
    """The mean of the two that are closest, if they are close.

    A server also works for itself, once in a while: it saves its database, or asks for names for
    the first time. A difference that holds such work has no other like it.
    """
    pairs = list(pairwise(sorted(each)))
    if not pairs:
        return None
    low, high = min(pairs, key=lambda pair: pair[1] - pair[0])
    return (low + high) / 2 if low > 0 and high <= low * (1 + AGREE) else None


def _idle(at: Bench) -> float:
    """What the server does in a second without any operation."""
    box = at.instance.container
    _command(box, "zero")
    began = time.monotonic()
    time.sleep(IDLE_S)
    _command(box, "dump")
    return _newest_total(box) / (time.monotonic() - began)


def operations_of(operation_s: float) -> int:
    """Of the shorter run, if one takes so long."""
    return round(min(MOST, max(FEWEST, PAIR_S / 3 / max(operation_s, 1e-3))))


@dataclass(frozen=True, kw_only=True)
class _Run:
    """So many instructions in so long."""

    instructions: int
    seconds: float


def _counted(at: Bench, workload: Workload, operations: int) -> _Run:
    box = at.instance.container
    _command(box, "zero")
    began = time.monotonic()
    size = Operations(per_thread=operations, limit_s=LIMIT_S)
    report = execute_load(at, workload, size)
    if report.total != operations or report.errors:
        raise WorkloadError(
            f"{workload.id} under valgrind: {report.total or 0} of {operations} operations "
            "succeeded",
            log=at.load.log,
        )
    _command(box, "dump")
    return _Run(instructions=_newest_total(box), seconds=time.monotonic() - began)


def _command(box: Container, words: str) -> None:
    box.must(
        *ENVIRONMENT, "sh", "-c", OWN_LOADER, "vgdb", f"--vgdb-prefix={PIPES}", "--wait=30",
        *words.split(),
        what="control callgrind",
    )  # fmt: skip


def _newest_total(box: Container) -> int:
    script = f'for f in $(ls -t /tmp/{OUT}*); do grep -E "^(summary|totals): " "$f" && break; done'
    found = TOTAL.search(box.must("sh", "-c", script, what="read callgrind's count"))
    if found is None:
        raise InstanceError("callgrind counted nothing", log=box.log)
    return int(found["count"])
