"""Whether a disk is full: measured, since anybody can print that it is."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOM_BYTES = 64 << 20  # with less than this left, what was written did not fit
LOOK_S = 0.2


@dataclass(kw_only=True)
class LeastRoom:
    """The least that was free on any of some disks while a command ran."""

    free_bytes: int | None = None

    @property
    def is_short(self) -> bool:
        return self.free_bytes is not None and self.free_bytes < ROOM_BYTES

    def look(self, places: Sequence[Path]) -> None:
        for place in places:
            free = _free_bytes(place)
            if free is not None:
                self.free_bytes = free if self.free_bytes is None else min(self.free_bytes, free)


def no_room(place: Path) -> bool:
    """Whether so little can be written there now; a quota and a want of inodes count too."""
    if not place.is_dir():
        return False
    try:
        with tempfile.TemporaryFile(dir=place) as trial:
            os.posix_fallocate(trial.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            return True
        free = _free_bytes(place)
        return free is not None and free < ROOM_BYTES
    return False


@contextmanager
def least_room(places: Sequence[Path]) -> Iterator[LeastRoom]:
    """Look while the block runs: what fills a disk and fails may be removed before its error."""
    room, ended = LeastRoom(), threading.Event()

    def look() -> None:
        room.look(places)
        while not ended.wait(LOOK_S):
            room.look(places)

    if not places:
        yield room
        return
    thread = threading.Thread(target=look, name="disk-room", daemon=True)
    thread.start()
    try:
        yield room
    finally:
        ended.set()
        thread.join()


def _free_bytes(place: Path) -> int | None:
    try:
        facts = os.statvfs(place)
    except OSError:
        return None
    return facts.f_bavail * facts.f_frsize if facts.f_files == 0 or facts.f_favail else 0
