"""Waiting for a server by what it can do, and saying why one ended.

A server may also run next to its container's main command: it is started with its output kept, so
that its end is told in the same way.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ldap3.core.exceptions import LDAPException

from dsharness.containers.container import Container
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import (
    DeadlineError,
    DsbisectError,
    InstanceError,
    PortTakenError,
    SurroundingsError,
)
from dsharness.guarded_files import shared_file
from dsharness.plain_text import plain
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline, wait_until
from dsharness.systems.system import ENDED_NAME, OUTPUT_NAME, SHARED_FOLDER, Endpoint, System

# A process left running in a container is not seen: its output and end go where the lab looks.
START = f'"$@" >{SHARED_FOLDER}/{OUTPUT_NAME} 2>&1; echo $? >{SHARED_FOLDER}/{ENDED_NAME}'
# $1 is the file with the server's process id, $2 the one that tells its end.
STOP = """
pid=$(cat "$1") && kill "$pid" || exit 1
left=600
while [ -d "/proc/$pid" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
[ ! -d "/proc/$pid" ] || exit 1
left=50
while [ ! -s "$2" ] && [ "$left" -gt 0 ]; do sleep 0.1; left=$((left - 1)); done
rm -f "$2"
"""


def start_aside(box: Container, *command: str) -> None:
    """Leave the server running next to the container's main command."""
    box.start("sh", "-c", START, "sh", *command)


def stop_aside(box: Container, pid_file: str) -> None:
    """End the server cleanly; its data is whole afterwards."""
    ended = f"{SHARED_FOLDER}/{ENDED_NAME}"
    box.must("sh", "-c", STOP, "sh", pid_file, ended, what="stop the server")


READY_LIMIT_S = 120.0
LOOK_S = 0.02  # between two looks whether it answers: starts are compared by when it did
ENDED_S = 0.5  # between two looks whether it ended: podman takes a tenth of a second to say so
STATUS_BYTES = 100
SOCKETS, LISTENING = ("/proc/net/tcp", "/proc/net/tcp6"), "0A"
ASK_LIMIT_S = 10.0
SETTLE_S = 3.0  # for podman to notice that a container has ended
MOST_BYTES = 64 << 10  # of what a server says
LOADER = re.compile(r"error while loading shared libraries|symbol lookup error|undefined symbol")


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A private folder whose inner one a container's own users may write to.

    Its path stays short: a Unix socket's may have 107 bytes at most.
    """
    place = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108
    with scratch_folder("run", place) as outer:
        inner = outer / "run"
        with writing(place):
            inner.mkdir()
        inner.chmod(0o777)
        yield inner


def boot_s() -> float:
    """Now, by the clock that a process's begin is told in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(frozen=True, kw_only=True)
class FirstAnswer:
    """When a server first answered, between two looks, by CLOCK_BOOTTIME."""

    endpoint: Endpoint
    after_s: float
    by_s: float


def wait_until_ready(box: Container, shared: Path, system: System) -> Endpoint:
    """Wait until it answers what a load would ask. Shows the server's output if it does not."""
    return first_answer(box, shared, system).endpoint


def first_answer(box: Container, shared: Path, system: System) -> FirstAnswer:
    """The same, with when that was."""
    endpoint, refused_s, asked_s = system.endpoint(box, shared), boot_s(), 0.0

    def probe() -> FirstAnswer | None:
        nonlocal refused_s, asked_s
        began_s = boot_s()
        if system.ready(endpoint):
            return FirstAnswer(endpoint=endpoint, after_s=refused_s, by_s=boot_s())
        refused_s = began_s
        if began_s >= asked_s + ENDED_S:
            why = ended(box, shared)
            if why is not None:
                raise start_error(box, system, f"did not become ready: {why}", shared)
            asked_s = boot_s()
        return None

    awaited, limit = "the server's first answer", Deadline.of_work(READY_LIMIT_S)
    try:
        return wait_until(probe, limit, what=awaited, pause_s=LOOK_S)
    except DeadlineError as error:
        awaited = f"did not become ready: {error.message}"
        raise start_error(box, system, awaited, shared) from error


def ended(box: Container, shared: Path) -> str | None:
    """How the server ended; None while it runs."""
    try:
        content = shared_file(shared, ENDED_NAME, most_bytes=STATUS_BYTES).decode(
            "ascii", "replace"
        )
    except OSError:  # not there yet, or the server put something else there
        return None if box.running else "it ended"
    status = content.strip()
    return f"it ended with status {status}" if status.isdecimal() else "it ended"


def ended_by_now(box: Container, shared: Path) -> str | None:
    """The same after a failure: podman notices an end a moment later."""
    try:
        return wait_until(
            lambda: ended(box, shared), Deadline.after(SETTLE_S), what="the server's end"
        )
    except DeadlineError:
        return None


@contextmanager
def answering(box: Container, shared: Path, system: System) -> Iterator[None]:
    """Use it from its first answer on: a failure because the server ended gets its last output."""
    try:
        yield
    except (DsbisectError, LDAPException, OSError) as error:
        why = None if isinstance(error, SurroundingsError) else ended_by_now(box, shared)
        complaint = f"did not last: {why} after its first answer"
        failure = start_error(box, system, complaint, shared) if why else error
        if isinstance(failure, InstanceError):
            failure.answered = True
        raise failure from error


def start_error(
    box: Container, system: System, complaint: str, shared: Path | None = None
) -> InstanceError | PortTakenError:
    """An error with the server's last output; a taken port gets its own kind."""
    if error := box.overfilled():
        return error
    words = _side_output(shared) or box.output() or box.tail(system.error_log())
    box.note(words)
    if "in use" in words and _is_taken(box, system.port):  # a server can say anything
        return PortTakenError(
            f"port {system.port} is taken in the server's network namespace",
            hint="something else listens there; the lab's own servers each get a namespace",
            log=box.log,
        )
    last = telling_line(words, system.reason)
    error = InstanceError(
        f"the server {complaint}" + (f"; its last output: {last}" if last else ""),
        hint="the log has its output; `--keep` keeps the container",
        log=box.log,
    )
    error.killed = box.state().killed
    return error


def _is_taken(box: Container, port: int) -> bool:
    """Whether something listens there in the server's network namespace, after the server."""
    result = box.neighbour().execute("cat", *SOCKETS, keep_bytes=MOST_BYTES, limit_s=ASK_LIMIT_S)
    return listens(result.stdout, port)


def listens(sockets: str, port: int) -> bool:
    """Whether the kernel's list of TCP sockets has one that listens on a port."""
    lines = (line.split() for line in sockets.splitlines())
    return any(
        line[1].endswith(f":{port:04X}") and line[3] == LISTENING for line in lines if len(line) > 3
    )


def telling_line(words: str, reason: Callable[[Sequence[str]], str | None]) -> str:
    """The loader's complaint, or what the driver takes for the reason, or the last line."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    refused = [line for line in lines if LOADER.search(line)]
    if refused:
        return refused[-1]
    return reason(lines) or (lines[-1] if lines else "")


def _side_output(shared: Path | None) -> str:
    """The output of a server that is not its container's main command."""
    if shared is None:
        return ""
    try:
        content = shared_file(shared, OUTPUT_NAME, most_bytes=MOST_BYTES)
    except OSError:
        return ""
    return plain(content.decode("utf-8", "replace"))
