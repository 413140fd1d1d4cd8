"""The one door for subprocesses: argv only, always bounded, always logged on failure."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsharness.errors import DiskFullError, StoppedError, ToolMissingError
from dsharness.plain_text import plain, without_credentials
from dsharness.process.deadline import Deadline
from dsharness.process.output import (
    LOG_END_BYTES,
    All,
    FileFullError,
    Kept,
    LogEnd,
    OutputLines,
    Sink,
    ToFile,
    WholeWords,
    converse,
    room_in,
)

DEFAULT_LIMIT_S = 600.0
LAST_WORDS_S = 5.0
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
MOST_BYTES = 64 << 20  # of a stream that is read whole
MOST_FILE_BYTES = 1 << 30  # of a stream that becomes a file

# A Ctrl-C reaches the main thread only; this is how it reaches what the other threads run.
_stopping = threading.Event()
_children: set[subprocess.Popen[bytes]] = set()

PACKAGES_WITH = {
    "podman": "podman",
    "buildah": "buildah",
    "mmdebstrap": "mmdebstrap",
    "dnf": "dnf",
    "createrepo_c": "createrepo-c",
    "rpmbuild": "rpm",
}


@dataclass(frozen=True, kw_only=True)
class Completed:
    """What a finished command left: its status and both streams."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str
    timed_out: bool = False
    overflowed: bool = False  # it printed more than is kept, and all of it was needed

    @property
    def ok(self) -> bool:
        return self.status == 0 and not self.timed_out and not self.overflowed

    @property
    def end(self) -> str:
        if self.overflowed:
            return "too much output"
        return "timed out" if self.timed_out else f"exit status {self.status}"

    def __str__(self) -> str:
        return f"$ {shlex.join(self.argv)}\n{self.stdout}{self.stderr}[{self.end}]\n"


def find_tool(name: str) -> str:
    """Return the path of a program, or an error that says how to get it."""
    path = shutil.which(name)
    if path is None:
        package = PACKAGES_WITH.get(name, name)
        raise ToolMissingError(
            f"{name} is not installed",
            hint=f"`make setup` installs it, or: apt-get install {package} / dnf install {package}",
        )
    return path


def run(  # noqa: PLR0913 - each is a property of one process
    argv: Sequence[str],
    *,
    deadline: Deadline | None = None,
    stdin: str | None = None,
    env: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    log: Path | None = None,
    cleanup: bool = False,
    keep_bytes: int | None = None,
    into: Path | None = None,
    into_bytes: int = MOST_FILE_BYTES,
    on_line: Callable[[str], None] | None = None,
) -> Completed:
    """Run to the end or to the deadline; never raises for a failing command.

    With ``keep_bytes``, no more than that is kept of each stream, its begin and its end; without,
    a command that says more than anything that is read whole has failed. ``into`` takes standard
    output unchanged; a command that has more of it than ``into_bytes`` is ended, and has failed.
    ``on_line`` gets each line of both streams as it comes. In ``env``, None takes a variable away.

    The child gets its own session, so that a Ctrl-C reaches the lab first and the lab
    decides what to end. After ``stop_all`` only ``cleanup`` commands still run.
    """
    if _stopping.is_set() and not cleanup:
        raise StoppedError(f"{argv[0]} was not started: the lab is stopping")
    find_tool(argv[0])
    limit = deadline if deadline is not None else Deadline.after(DEFAULT_LIMIT_S)
    outputs = Kept(most_bytes=keep_bytes or MOST_BYTES), Kept(most_bytes=keep_bytes or MOST_BYTES)
    with (
        _logged(log, argv) as log_end,
        _sinks(outputs, log_end, into, into_bytes, on_line) as (out, err),
        subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(env or {}),
            cwd=cwd,
            start_new_session=True,
        ) as child,
    ):
        if not cleanup:
            _children.add(child)
            if _stopping.is_set():  # meanwhile: nobody else knew of this one
                _end(child)
        try:
            text = None if stdin is None else stdin.encode(errors="surrogateescape")
            timed_out, full = _conversed(child, text, out, err, limit)
        except BaseException:
            _end(child)
            raise
        finally:
            _children.discard(child)
            _let_go(child)
    if _stopping.is_set() and not cleanup:
        # It was ended from here, whatever it says: a podman that is ended may say 0.
        raise StoppedError(f"{argv[0]} was ended: the lab is stopping")
    result = Completed(
        argv=tuple(argv),
        status=child.returncode,
        stdout=outputs[0].text,
        stderr=outputs[1].text,
        timed_out=timed_out,
        overflowed=full or (keep_bytes is None and any(output.cut_bytes for output in outputs)),
    )
    if log is not None:
        _close_log(log, result, log_end)
    return result


def _conversed(
    child: subprocess.Popen[bytes], stdin: bytes | None, out: Sink, err: Sink, limit: Deadline
) -> tuple[bool, bool]:
    """Return whether its time was up first, and whether its file was full; then it was ended."""
    try:
        timed_out, full = not converse(child, stdin, out, err, limit), False
    except FileFullError:
        timed_out, full = False, True
    if timed_out or full:
        _end(child)
        converse(child, None, out, err, Deadline.after(LAST_WORDS_S))
    return timed_out, full


def _environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return that of the lab, changed."""
    environment = {**os.environ, **changes}
    return {name: value for name, value in environment.items() if value is not None}


@contextmanager
def _logged(log: Path | None, argv: Sequence[str]) -> Iterator[LogEnd | None]:
    """Yield the log as a sink, the command as one could type it in front."""
    if log is None:
        yield None
        return
    append_log(log, f"$ {shlex.join(argv)}\n")
    with writing(log), log.open("ab", buffering=0) as stream:
        yield LogEnd(path=log, stream=stream, left_bytes=room_in(stream))


@contextmanager
def _sinks(
    outputs: tuple[Kept, Kept],
    log_end: LogEnd | None,
    into: Path | None,
    into_bytes: int,
    on_line: Callable[[str], None] | None,
) -> Iterator[tuple[Sink, Sink]]:
    words = [] if log_end is None else [WholeWords(log=log_end) for _ in outputs]

    def sink(index: int) -> Sink:
        sinks: tuple[Sink, ...] = (outputs[index], *words[index : index + 1])
        return All(sinks=sinks if on_line is None else (*sinks, OutputLines(tell=on_line)))

    out, err = map(sink, range(len(outputs)))
    try:
        if into is None:
            yield out, err
            return
        with writing(into), into.open("wb") as stream:
            yield ToFile(stream=stream, most_bytes=into_bytes), err
    finally:
        for word_sink in words:
            word_sink.end()


def _close_log(log: Path, result: Completed, log_end: LogEnd | None) -> None:
    if log_end is not None and log_end.cut:
        last = plain(without_credentials(f"{result.stdout}{result.stderr}")[-LOG_END_BYTES:])
        append_log(log, f"\n[... this log is full; the last lines:]\n{last}")
    append_log(log, f"[{result.end}]\n")


def _let_go(child: subprocess.Popen[bytes]) -> None:
    """Close what is still open: a stranger that holds the other end would be waited for."""
    for stream in (child.stdin, child.stdout, child.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def stop_all() -> None:
    """End every running command but clean-ups, and let no other start: on the way out."""
    _stopping.set()
    for child in tuple(_children):
        _end(child)


def go_on() -> None:
    """Let commands start again, once what was to be ended has ended."""
    _stopping.clear()


def append_log(log: Path, text: str) -> None:
    with writing(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8", opener=owners_alone) as stream:
            stream.write(without_credentials(text))


def owners_alone(path: str, flags: int) -> int:
    """Open a file that nobody else may read, if it is made now."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


@contextmanager
def writing(where: Path) -> Iterator[None]:
    """Let a disk that fills up inside the block end as a DiskFullError that names ``where``."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, where) from error


def disk_error(error: OSError, where: Path) -> Exception:
    """Return ENOSPC as the lab's own error; anything else unchanged."""
    if error.errno in NO_SPACE:
        return disk_full(where)
    return error


def disk_full(where: Path) -> DiskFullError:
    return DiskFullError(
        f"no space left while writing {where}",
        hint="`dsbisect clean --images` frees what the lab made; then start again: it resumes",
    )


def says_disk_full(text: str) -> bool:
    return "no space left on device" in text.lower() or "disk quota exceeded" in text.lower()


def atomic_write(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all; a text as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            part.chmod(0o644)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask the child's whole session to end, then insist.

    The session is killed even when its leader went quietly: one member that ignores SIGTERM
    would hold the pipes open, and the wait for their end would have no bound.
    """
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
        except ProcessLookupError:
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=5)
