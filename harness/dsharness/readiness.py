"""Waiting for a directory by what it can do: a bind that succeeds."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsharness.commands import writing
from dsharness.containers import Container
from dsharness.directory import connect
from dsharness.errors import DeadlineError, InstanceError, PortTakenError
from dsharness.servers.contract import SOCKET_NAME, ServerDriver
from dsharness.waiting import Deadline, wait_until

READY_LIMIT_S = 120.0


@contextmanager
def shared_folder() -> Iterator[Path]:
    """A private folder whose inner one a container's own users may write to.

    Its path stays short: a Unix socket's may have 107 bytes at most.
    """
    place = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108
    with writing(place):
        outer = Path(tempfile.mkdtemp(prefix="dsb-", dir=place))
    try:
        inner = outer / "run"
        with writing(place):
            inner.mkdir()
        inner.chmod(0o777)
        yield inner
    finally:
        shutil.rmtree(outer, ignore_errors=True)


def wait_for_bind(box: Container, shared: Path, driver: ServerDriver) -> Path:
    """Wait until the manager can bind; returns the socket. Says what the server said if not."""
    socket = shared / SOCKET_NAME

    def probe() -> Path | None:
        if not socket.exists():
            if not box.running:
                raise start_error(box, driver, "it ended at once")
            return None
        try:
            with connect(socket, driver.site):
                return socket
        except InstanceError:
            return None

    try:
        return wait_until(probe, Deadline.after(READY_LIMIT_S), what="a bind as the manager")
    except DeadlineError as error:
        raise start_error(box, driver, error.message) from error


def start_error(box: Container, driver: ServerDriver, why: str) -> InstanceError | PortTakenError:
    """An error with the server's last words; a taken port gets its own kind."""
    words = box.output() or box.tail(driver.error_log())
    box.note(words)
    if "in use" in words:
        return PortTakenError(
            f"port {driver.site.port} is taken in the server's network namespace",
            hint="something else listens there; the lab's own servers each get a namespace",
            log=box.log,
        )
    last = [line for line in words.splitlines() if line.strip()]
    return InstanceError(
        f"the directory server did not become ready: {why}"
        + (f"; it said: {last[-1].strip()}" if last else ""),
        hint="the log has all it said; `--keep` leaves the container for a look",
        log=box.log,
    )
