"""A function as a process of its own; forked, since Python takes longer to start than a test."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO


@dataclass
class Fork:
    """A process, and the lines that it writes."""

    pid: int
    lines: TextIO

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, once it has ended; negative: the signal that ended it."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@contextmanager
def forked(work: Callable[[TextIO], int]) -> Iterator[Fork]:
    """It ends with the code that ``work`` gives, 1 after an error; killed, whatever happens."""
    reads, writes = os.pipe()
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reads)
            with os.fdopen(writes, "w") as lines:
                code = work(lines)
        except BaseException:  # noqa: BLE001 - nothing of the test may run on in here
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writes)
    with os.fdopen(reads) as lines:
        try:
            yield Fork(pid=pid, lines=lines)
        finally:
            with contextlib.suppress(ChildProcessError, ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
