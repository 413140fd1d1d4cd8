"""Instructions per operation, counted by callgrind: the server runs in valgrind.

It is some fifty times slower there, on the golden state that is measured otherwise too. Blind to
locks, to the kernel and to caches, so it never replaces a measured time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from dsharness.containers.container import Container, Options
from dsharness.errors import InstanceError
from dsharness.measure.exact_count import IDLE_S, Behind, CountedRun, Counts, T
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import INSTRUCTIONS
from dsharness.measure.sample import Bench
from dsharness.model import Workload

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


class Callgrind:
    """Counts the instructions of a server that runs under ``Valgrind``, one thread at a time."""

    kinds: ClassVar[tuple[Metric, ...]] = (INSTRUCTIONS,)
    busier: ClassVar[float] = 10.0
    least: ClassVar[float] = 1e8
    most: ClassVar[int] = 400
    agree: ClassVar[float] = 0.01
    within: ClassVar[str] = "under valgrind"

    def begin(self, at: Bench, workload: Workload) -> None:  # noqa: ARG002 - any workload
        _command(at.instance.container, "instrumentation on")

    def counted(self, at: Bench, work: Callable[[Behind], T]) -> tuple[T, Counts]:
        box = at.instance.container
        _command(box, "zero")
        began = time.monotonic()
        done = work(())
        _command(box, "dump")
        seconds = time.monotonic() - began
        dumps = box.must("sh", "-c", DUMPED, what="read callgrind's count")
        threads = {int(found["thread"]): int(found["count"]) for found in THREAD.finditer(dumps)}
        if not any(threads.values()):
            raise InstanceError("callgrind counted nothing", log=box.log)
        return done, {INSTRUCTIONS: CountedRun(threads=threads, seconds=seconds)}

    def rest(self, behind: Behind) -> None:  # noqa: ARG002 - it counts from inside
        time.sleep(IDLE_S)


def _command(box: Container, words: str) -> None:
    box.must(
        *ENVIRONMENT, "sh", "-c", OWN_LOADER, "vgdb", f"--vgdb-prefix={PIPES}", "--wait=30",
        *words.split(),
        what="control callgrind",
    )  # fmt: skip
