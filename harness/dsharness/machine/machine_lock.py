"""One measurement at a time on one machine, for all labs, users and benchmarks.

The kernel releases the lock however its holder ends. It is held for one sample or pair, so labs
that run at once take turns.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dsharness.process.command import writing

NAME = "dsbisect-measuring.lock"
# Where every user of a machine may leave a file; the first that is there, so that all agree.
SHARED = (Path("/run/lock"), Path("/var/lock"), Path("/tmp"))  # noqa: S108 - opened with care below


@contextmanager
def measuring_alone(progress: Callable[[str], None], path: Path | None = None) -> Iterator[None]:
    """Measure inside the block; ``progress`` is called when another lab has to finish first."""
    place = path or lock_file()
    with writing(place):
        descriptor = _opened(place)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting: {holder(descriptor)} measures on this machine")
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # a signal ends it, as its handler raises
        yield
    finally:
        os.close(descriptor)


def lock_file(shared: Sequence[Path] = ()) -> Path:
    """Return the same file for all users of this machine."""
    places = shared or SHARED
    return next((place for place in places if _for_all(place)), places[-1]) / NAME


def holder(descriptor: int, locks: Path = Path("/proc/locks")) -> str:
    """Return who has the lock of an open file, as far as the kernel tells."""
    inode = os.fstat(descriptor).st_ino
    try:
        text = locks.read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    match = re.search(rf"FLOCK\s+ADVISORY\s+WRITE\s+(\d+)\s+\S+:{inode}\s", text)
    return f"process {match[1]}" if match and match[1] != "0" else "another lab"


def _opened(path: Path) -> int:
    """Reading is enough for a lock, and all that the file of another user allows."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            pass
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            continue
        os.fchmod(descriptor, 0o644)  # independent of the umask: others must be able to read it
        return descriptor


def _for_all(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_IWOTH)
