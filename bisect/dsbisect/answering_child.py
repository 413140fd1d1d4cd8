"""A child that answers, and its parent that knows whether it did.

A library may end its process with any status: one that finds no memory with 1, which would be an
answer. So the child tells its answer on a pipe, and the parent ends with that or with none. Imports
nothing of the project: it must work even if the project is broken.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
SI_KERNEL = 0x80
STOPS = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})


def answer_of_child(work: Callable[[], int]) -> int | None:
    """What ``work`` answers in a process of its own; None when that ended without an answer.

    What the parent is sent to stop, the child is sent; a parent that is killed takes it along.
    """
    reading, writing = os.pipe()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS | {signal.SIGCHLD})
    parent, child = os.getpid(), os.fork()
    if child == 0:
        try:
            os.close(reading)
            _end_with(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.write(writing, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    _wait(child)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with os.fdopen(reading, encoding="ascii") as said:
        answer = said.read()
    return int(answer) if answer.isdecimal() else None


def _wait(child: int) -> None:
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        heard = signal.sigwaitinfo(STOPS | {signal.SIGCHLD})
        # The kernel sends a Ctrl-C to both; what somebody else sends reaches only the parent.
        if heard.si_signo != signal.SIGCHLD and heard.si_code != SI_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, heard.si_signo)


def _end_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError, MemoryError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
