"""How a build is confined: no network, no path of the host but its own, bounded in everything.

A commit's Makefile is somebody's program. It gets a container with a read-only system, without
capabilities, and with limits on memory, processes, time and disk.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsharness.brake import own_brake
from dsharness.containers import Container, Options, running
from dsharness.engine import Engine
from dsharness.ownership import remove

GIB = 1024**3
LOOK_S = 2.0
TEMPORARY = "/tmp:rw,size=2g,mode=1777"  # noqa: S108 - the container's own


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one build may use."""

    memory: str = "6g"
    processes: int = 1024
    time_s: float = 3600.0
    disk_bytes: int = 12 * GIB
    file_bytes: int = 4 * GIB


@dataclass
class DiskWatch:
    """Whether a build was ended because it filled its folder."""

    exceeded: bool = False


def bounded(limits: Limits, *command: str) -> tuple[str, ...]:
    """The command, with no file of it growing beyond the limit.

    Said by the shell: an engine that is told one limit forgets those that it was set up with.
    """
    blocks = str(limits.file_bytes // 512)
    return ("sh", "-c", 'ulimit -f "$1"; shift; exec "$@"', "sh", blocks, *command)


def options(limits: Limits, volumes: tuple[tuple[Path, str, str], ...], engine: Engine) -> Options:
    """The container of a build; pure, so that a test can read it."""
    memory = limits.memory if engine.limits_memory else None
    return Options(
        network="none",
        memory=memory,
        volumes=volumes,
        extra=(
            "--read-only", "--read-only-tmpfs=false", "--tmpfs", TEMPORARY,
            "--pids-limit", str(limits.processes),
            *(("--memory-swap", limits.memory) if memory else ()),
        ),
    )  # fmt: skip


@contextmanager
def confined(
    engine: Engine,
    image: str,
    *,
    folder: Path,
    volumes: tuple[tuple[Path, str, str], ...],
    purpose: str,
    log: Path,
    limits: Limits,
) -> Iterator[tuple[Container, DiskWatch]]:
    """A container for one build; it is removed as soon as ``folder`` outgrows its limit."""
    watch = DiskWatch()
    with running(
        engine, image, "sleep", "infinity",
        purpose=purpose, log=log, options=options(limits, volumes, engine),
    ) as box:  # fmt: skip
        ended, brake = threading.Event(), own_brake()

        def look() -> None:
            while not ended.wait(LOOK_S):
                if brake is not None and brake.held:
                    continue
                if size_of(folder) > limits.disk_bytes:
                    watch.exceeded = True
                    remove(engine, box.name)
                    return

        thread = threading.Thread(target=look, name="disk-watch", daemon=True)
        thread.start()
        try:
            yield box, watch
        finally:
            ended.set()
            thread.join()


def size_of(folder: Path) -> int:
    """Bytes on disk below a folder, links not followed; what goes meanwhile counts nothing."""
    total, folders = 0, [folder]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue
    return total
