"""What a container writes: it is ended before it fills the machine's disk.

The looks are cheap, since something may be measured meanwhile: how much room the disks have. Only
when they have lost as much as a container may write, its files are counted.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dsharness.containers.engine import Engine
from dsharness.process.command import run
from dsharness.process.deadline import Deadline

LOOK_S = 1.0
COUNT_S = 60.0
ENTRY_BYTES = 4096  # at least, so that many empty files are not for nothing
LEAST_ROOM = 1 << 30  # on a disk that had twice as much
ENDLESS = 1 << 62


@dataclass(kw_only=True)
class DiskWatch:
    """The folders of a container on this machine's disks, and why it was ended."""

    engine: Engine
    most_bytes: int
    exceeded: bool = False
    flood_bytes: int | None = None  # more than this a command in it wrote to its output
    short: bool = False  # a disk had no room any more; nobody knows who filled it
    _first: dict[Path, int] = field(default_factory=dict)  # the room that there was
    _room: dict[Path, int] = field(default_factory=dict)  # when its files were counted last

    @property
    def why(self) -> str | None:
        """None unless it was ended."""
        if self.flood_bytes is not None:
            return f"a command in it wrote more than {self.flood_bytes >> 20} MiB to its output"
        if self.exceeded:
            return f"it wrote more than {self.most_bytes >> 20} MiB"
        return f"the disk had less than {LEAST_ROOM >> 20} MiB left" if self.short else None

    @property
    def own_fault(self) -> bool:
        """Whether what it wrote itself ended it."""
        return self.exceeded or self.flood_bytes is not None

    def look(self, folders: tuple[Path, ...]) -> bool:
        """Return whether it is to be ended."""
        rooms = {folder: _room(folder) for folder in folders}
        self._first, self._room = self._first or rooms, self._room or rooms
        if any(self._room[folder] - rooms[folder] > self.most_bytes for folder in folders):
            self.exceeded = written(self.engine, folders) > self.most_bytes
            self._room = rooms
        self.short = any(rooms[folder] < LEAST_ROOM < self._first[folder] / 2 for folder in folders)
        return self.exceeded or self.short


def _room(folder: Path) -> int:
    """A lack of inodes is one of room."""
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize + facts.f_favail * ENTRY_BYTES


def written(engine: Engine, folders: tuple[Path, ...]) -> int:
    """Return bytes on disk below the folders; what cannot be counted in time is endless.

    Of a rootless container, only its own users may look at all of them.
    """
    behind = ("podman", "unshare") if engine.rootless else ()
    total = 0
    for form, unit in (("--block-size=1", 1), ("--inodes", ENTRY_BYTES)):
        result = run(
            [*behind, "du", "--summarize", "--total", form, "--", *map(str, folders)],
            env=engine.environment,
            deadline=Deadline.after(COUNT_S),
            cleanup=True,
        )
        count = result.stdout.splitlines()[-1:]
        total += int(count[0].split()[0]) * unit if count and not result.timed_out else ENDLESS
    return total


def folders_of(engine: Engine, name: str) -> tuple[Path, ...]:
    """Where a container's files are: its own layer, and what it may write to of its volumes."""
    result = engine.podman("container", "inspect", "--format", "json", name, cleanup=True)
    facts = json.loads(result.stdout)[0] if result.ok else {}
    layer = (facts.get("GraphDriver", {}).get("Data") or {}).get("UpperDir")
    volumes = [mount["Source"] for mount in facts.get("Mounts", ()) if mount["RW"]]
    return tuple(Path(path) for path in (layer, *volumes) if path)


@contextmanager
def disk_watch(engine: Engine, name: str, most_bytes: int) -> Iterator[DiskWatch]:
    """Watch a container that runs; it is killed when it has written more than it may."""
    watch, ended = DiskWatch(engine=engine, most_bytes=most_bytes), threading.Event()

    def look() -> None:
        folders: tuple[Path, ...] = ()
        while not ended.wait(LOOK_S):
            folders = folders or folders_of(engine, name)
            try:
                if watch.look(folders):
                    engine.podman("kill", name, cleanup=True)
                    return
            except FileNotFoundError:  # it was removed meanwhile
                return

    thread = threading.Thread(target=look, name="disk-watch", daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        ended.set()
        thread.join()
