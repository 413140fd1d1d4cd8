"""One maker at a time, across threads and processes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from dsharness.paths import use_cache
from dsharness.process.command import disk_error
from dsharness.process.deadline import Deadline, wait_until


@contextmanager
def exclusive(path: Path, deadline: Deadline) -> Iterator[None]:
    """Hold a file's lock; the kernel releases it however this process ends."""
    with first_free((path,), deadline):
        yield


@contextmanager
def first_free(paths: Sequence[Path], deadline: Deadline) -> Iterator[Path]:
    """Hold the lock of the first of these files that nobody else holds."""
    use_cache()  # most locks are of the cache, and nothing there is used without one

    def free_lock() -> Path | None:
        for path, descriptor in opened.items():
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return path
        return None

    opened: dict[Path, int] = {}
    try:
        for path in paths:
            opened[path] = _descriptor(path)
        yield wait_until(free_lock, deadline, what=f"another process to release {paths[-1]}")
    finally:
        for descriptor in opened.values():
            os.close(descriptor)


def _descriptor(path: Path) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise disk_error(error, path) from error
