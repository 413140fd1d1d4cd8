"""How a build is confined: no network, no path of the host but its own, bounded in everything.

A commit's Makefile is untrusted code. It gets a container with a read-only system, without
capabilities, and with limits on memory, processes, time and disk.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.sandbox.untrusted_files import size_of
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import remove
from dsharness.process.command import Completed

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
    cache_bytes: int = 3 * GIB  # of the compiler cache, which bounds itself to 2 GiB


@dataclass(kw_only=True)
class FolderLimits:
    """Folders that a build may write to, and which one it filled beyond its limit."""

    limits: Mapping[Path, int]
    exceeded: Path | None = None

    def look(self) -> bool:
        """Whether one of them is larger than it may be, now or before."""
        if self.exceeded is None:
            over = (path for path, most in self.limits.items() if size_of(path) > most)
            self.exceeded = next(over, None)
        return self.exceeded is not None


# A podman that is ended while it runs something may say 0, as if that had come to its end.
DONE = "dsbisect-stage\tdone"


def bounded(limits: Limits, *command: str) -> tuple[str, ...]:
    """The command, with no file of it growing beyond the limit; it prints ``DONE`` at its end.

    Set by the shell: an engine that gets one limit forgets those of its configuration.
    """
    blocks = str(limits.file_bytes // 512)
    text = f'ulimit -f "$1"; shift; "$@" && printf "{DONE}\\n"'
    return ("sh", "-c", text, "sh", blocks, *command)


def came_to_its_end(done: Completed) -> bool:
    """Whether the whole of a bounded command succeeded."""
    return done.ok and done.stdout.endswith(f"{DONE}\n")


def options(
    limits: Limits,
    volumes: tuple[tuple[Path, str, str], ...],
    engine: Engine,
) -> Options:
    """The container of a build; pure, so that a test can read it."""
    memory = limits.memory if engine.limits_memory else None
    return Options(
        memory=memory,
        processes=limits.processes,
        disk_bytes=None,  # its folders have limits of their own
        volumes=volumes,
        extra=(
            "--read-only", "--read-only-tmpfs=false", "--tmpfs", TEMPORARY,
            *(("--memory-swap", limits.memory) if memory else ()),
        ),
    )  # fmt: skip


@contextmanager
def confined(
    engine: Engine,
    image: str,
    *,
    writable: Mapping[Path, int],
    volumes: tuple[tuple[Path, str, str], ...],
    purpose: str,
    log: Path,
    limits: Limits,
) -> Iterator[tuple[Container, FolderLimits]]:
    """A container for one build; it is removed as soon as a folder outgrows its limit in bytes."""
    watch = FolderLimits(limits=writable)
    with running(
        engine, image, "sleep", "infinity",
        purpose=purpose, log=log, options=options(limits, volumes, engine),
    ) as box:  # fmt: skip
        ended = threading.Event()

        def look() -> None:
            while not ended.wait(LOOK_S):
                if watch.look():
                    remove(engine, box.name)
                    return

        thread = threading.Thread(target=look, name="disk-watch", daemon=True)
        thread.start()
        try:
            yield box, watch
        finally:
            ended.set()
            thread.join()
