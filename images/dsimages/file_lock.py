"""One maker at a time, across threads and processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsharness.cache_folder import use_cache
from dsharness.process.command import disk_error
from dsharness.process.deadline import Deadline, wait_until


@contextmanager
def exclusive(path: Path, deadline: Deadline) -> Iterator[None]:
    """Hold a file's lock; the kernel releases it however this process ends."""
    use_cache()  # most locks are of the cache, and nothing there is used without one
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise disk_error(error, path) from error

    def taken() -> bool | None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return True

    try:
        wait_until(taken, deadline, what=f"another process to release {path}")
        yield
    finally:
        os.close(descriptor)
