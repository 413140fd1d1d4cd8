"""The program's entry: imports late, and lets `judge` report only what was measured.

`git bisect run` takes 0 for "good", 1 to 127 for "bad", 125 for "skip", and stops at 128 or more.
A missing library, a wrong option, a full disk, a closed pipe: none of them is the commit's
fault, so for `judge` everything that is not a verdict is 125. A measured verdict stays valid,
even if it cannot be printed. `validate` has answers of its own.

A parent process decides the status of both: a library may end its process with any status,
and one that finds no memory does with 1, which would be an answer. So a child tells its answer on a
pipe, and the parent ends with that or with none. Standard streams that are closed or full do not
keep the program from ending as it should. Nothing of the project is imported until a command runs:
this must work even if the project is broken.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import io
import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TextIO

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Patient(io.FileIO):
    """A file descriptor; what cannot be written to it is dropped."""

    forgiven: type[OSError] = OSError

    def write(self, data, /) -> int:  # type: ignore[no-untyped-def]  # noqa: ANN001 - a buffer
        size = memoryview(data).nbytes
        with contextlib.suppress(self.forgiven):
            return super().write(data) or size
        return size


class _Unread(_Patient):
    """The same, only if there is no reader any more: a full disk stays an error."""

    forgiven = BrokenPipeError


def fill_gaps() -> None:
    """Open those of 0, 1 and 2 that the caller closed, or a database would get such a number."""
    with contextlib.suppress(OSError):
        while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(descriptor)


def patient(stream: TextIO | None, descriptor: int, *, full: bool = True) -> TextIO:
    """A stream that continues when its reader has gone or, if ``full``, its disk is full."""
    raw = (_Patient if full else _Unread)(descriptor, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=getattr(stream, "encoding", None) or "utf-8",
        errors=getattr(stream, "errors", None) or "backslashreplace",
        line_buffering=descriptor == 2 or raw.isatty(),
    )


def flush(streams: Sequence[TextIO | None]) -> None:
    """Write out what is buffered, as far as it is accepted."""
    for stream in streams:
        with contextlib.suppress(Exception):
            if stream is not None:
                stream.flush()


def leave(code: int) -> None:
    """End at once with this exit code: Python's own end would turn a full stream into 120."""
    flush((sys.stdout, sys.stderr))
    os._exit(code)


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
    with os.fdopen(reading, encoding="ascii") as pipe:
        answer = pipe.read()
    return int(answer) if answer.isdecimal() else None


def _wait(child: int) -> None:
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        signal_info = signal.sigwaitinfo(STOPS | {signal.SIGCHLD})
        # The kernel sends a Ctrl-C to both; what somebody else sends reaches only the parent.
        if signal_info.si_signo != signal.SIGCHLD and signal_info.si_code != SI_KERNEL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal_info.si_signo)


def _end_with(parent: int) -> None:
    with contextlib.suppress(OSError, AttributeError, MemoryError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


GOOD, BAD, SKIP, INTERRUPTED = 0, 1, 125, 130
# No other part of the program ends with these: an ordinary 0 or 1 is not a verdict.
JUDGED_GOOD, JUDGED_BAD = 1000, 1001
NOT_TO_BE_SHIPPED = 1001
NO, DEFECT, UNWRITTEN = 1, 70, 12
HELP = {"-h", "--help"}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
OBJECTS_BETWEEN = 50_000  # made until Python looks for those that nothing refers to


def main() -> NoReturn:
    """Run one command; where the status is the answer, only what was found becomes one."""
    # What libraries define stays: to look through it every 700 objects took a tenth of a page.
    gc.set_threshold(OBJECTS_BETWEEN)
    keep_freed_memory()
    # more threads for a small table wait for one another longer than they count
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    fill_gaps()
    sys.stderr = patient(sys.stderr, 2)
    command = command_of(sys.argv[1:])
    # What a command found stays so if nobody reads it; where the status is the whole answer, also
    # if it cannot be written.
    sys.stdout = patient(sys.stdout, 1, full=command in {"judge", "validate"})
    if command == "validate":
        _answer(_validated_run, otherwise=DEFECT)
    if command == "judge":
        _answer(_judged_run, otherwise=SKIP)
    try:
        _run()
    except SystemExit as end:
        _keep_status(end)
        raise


def _keep_status(end: SystemExit) -> None:
    """End now if what is left to print cannot be: Python's own end would make 120 of it."""
    try:
        sys.stdout.flush()
    except OSError:
        leave(end.code if isinstance(end.code, int) and end.code else UNWRITTEN)


def keep_freed_memory() -> None:
    """Planning fills tables of megabytes again and again: a third of its time was fresh memory."""
    with contextlib.suppress(OSError, AttributeError):  # not every C library has it
        tune = ctypes.CDLL(None).mallopt
        tune(M_TRIM_THRESHOLD, 128 << 20)
        tune(M_MMAP_THRESHOLD, 32 << 20)


def _answer(work: Callable[[], int], *, otherwise: int) -> NoReturn:
    """End with what ``work`` answers, or with ``otherwise`` if it ended without an answer."""

    def told() -> int:
        try:
            return work()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException:  # noqa: BLE001 - such as a MemoryError while reporting another error
            return otherwise
        finally:
            flush((sys.stdout, sys.stderr))

    try:
        code = answer_of_child(told)
    except BaseException:  # noqa: BLE001 - without a child there is no answer
        code = None
    if code is None:
        _warn("the process ended without an answer; is there too little memory?")
    leave(otherwise if code is None else code)
    raise AssertionError("the process has ended")


def command_of(args: list[str]) -> str:
    """The command, unless it is only asked for its help: no option before it takes a word."""
    return (
        ""
        if HELP & set(args)
        else next((argument for argument in args if not argument.startswith("-")), "")
    )


def judged(code: object) -> int:
    """The exit code for `git bisect run`."""
    match code:
        case 1000:
            return GOOD
        case 1001:
            return BAD
        case 130:
            return INTERRUPTED
        case _:
            return SKIP


def validated(code: object) -> int:
    """The exit code of `validate`."""
    number = code if isinstance(code, int) else int(bool(code))
    return {NOT_TO_BE_SHIPPED: NO, 1: DEFECT}.get(number, number)


def _validated_run() -> int:
    try:
        _run()
    except SystemExit as end:
        return validated(end.code)


def _judged_run() -> int:
    try:
        _run()
    except SystemExit as end:
        code = judged(end.code)
        if code == SKIP and end.code != SKIP:
            _warn("not judged, skipped: see the error above")
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BaseException as error:  # noqa: BLE001 - a broken lab must not blame a commit
        _warn(f"not judged, skipped: {type(error).__name__}: {error}")
        return SKIP


def _warn(why: str) -> None:
    why = why if why.isprintable() else ascii(why)
    with contextlib.suppress(Exception):
        sys.stderr.write(f"warning: {why}\n")


def _run() -> NoReturn:
    try:
        from dsbisect.cli import main as run  # noqa: PLC0415 - its imports take a while
        from dsproducts import assemble  # noqa: PLC0415 - the same
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    assemble()
    run()
