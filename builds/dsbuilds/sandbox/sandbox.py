"""How a build is confined: no network, no path of the host but its own, bounded in everything.

A commit's Makefile is untrusted code. It gets a container with a read-only system, without
capabilities, and with limits on memory, processes, time and disk. One script of the lab runs in it,
and what it says is logged.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.build_cache import builds_home
from dsbuilds.failure_reason import (
    UnbuildableError,
    cause_of,
    may_be_the_compiler,
    may_be_the_toolchain,
    passing,
    stage_of,
)
from dsbuilds.sandbox.untrusted_files import removed, size_of, temporary_folder, temporary_name
from dsharness.containers.container import Container, Options, running
from dsharness.containers.engine import Engine
from dsharness.containers.ownership import remove
from dsharness.errors import DeadlineError
from dsharness.plain_text import plain
from dsharness.process.command import Completed, disk_full, says_disk_full
from dsimages.buildah import Workshop

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
        """Return whether one of them is larger than it may be, now or before."""
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


def came_to_its_end(result: Completed) -> bool:
    """Return whether the whole of a bounded command succeeded."""
    return result.ok and result.stdout.endswith(f"{DONE}\n")


def options(limits: Limits, volumes: tuple[tuple[Path, str, str], ...], engine: Engine) -> Options:
    """Return the container of a build; pure, so that a test can read it."""
    memory = limits.memory if engine.limits_memory else None
    return Options(
        memory=memory,
        processes=limits.processes,
        disk_bytes=None,  # its folders have limits of their own
        volumes=volumes,
        extra=(
            "--read-only",
            "--read-only-tmpfs=false",
            "--tmpfs",
            TEMPORARY,
            *(("--memory-swap", limits.memory) if memory else ()),
        ),
    )


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
        engine, image, purpose=purpose, log=log, options=options(limits, volumes, engine)
    ) as box:
        finished = threading.Event()

        def look() -> None:
            while not finished.wait(LOOK_S):
                if watch.look():
                    remove(engine, box.name)
                    return

        thread = threading.Thread(target=look, name="disk-watch", daemon=True)
        thread.start()
        try:
            yield box, watch
        finally:
            finished.set()
            thread.join()


HIGHEST = 124  # the highest status of a command; above it is the engine's or a signal's
LINE = 2000  # characters of one line
SAID_BYTES = 8 << 20  # of what a build says; its log has more
FULL_BYTES = 64 << 20  # less than this is left: the machine's disk is full, not a limit reached
INSIDE = "/usr/libexec/dsbisect-build/script"
SOURCE = "/usr/libexec/dsbisect-build/source.tar"


def unbuildable(output: str, log: Path) -> UnbuildableError:
    """Return the error for the output of the tools."""
    return UnbuildableError(
        f"unbuildable: {cause_of(output)} (while it ran {stage_of(output)})",
        log=log,
        lasting=not passing(output),
        toolchain=may_be_the_toolchain(output),
        compiler=may_be_the_compiler(output),
    )


def confined_run(  # noqa: PLR0913 - each is a property of one build
    workshop: Workshop,
    image: str,
    script: Path,
    *args: str,
    build: Path,
    source: Path | None = None,
    cache: Path | None = None,
    volumes: tuple[tuple[Path, str, str], ...] = (),
    limits: Limits,
    on_line: Callable[[str], None] | None = None,
) -> str | None:
    """Run a script in /build without a network; its output if it failed, otherwise None.

    ``source`` is an archive that the script unpacks, ``cache`` a compiler cache; ``on_line`` gets
    each line that it prints. What is left in ``build`` has untrusted content: read it with
    ``untrusted_files``.
    """
    mounted = ((build, "/build", "rw"), (script, INSIDE, "ro"), *volumes)
    mounted += ((source, SOURCE, "ro"),) if source else ()
    mounted += ((cache, "/build/ccache", "rw"),) if cache else ()
    writable = {build: limits.disk_bytes} | ({cache: limits.cache_bytes} if cache else {})
    limit_s = min(limits.time_s, workshop.deadline.left_s)
    for second_try in (False, True):
        with confined(
            workshop.engine,
            image,
            writable=writable,
            volumes=mounted,
            purpose="build",
            log=workshop.log,
            limits=limits,
        ) as (box, disk):
            result = box.execute(
                *bounded(limits, INSIDE, *args),
                limit_s=limit_s,
                keep_bytes=SAID_BYTES,
                on_line=on_line,
            )
            complete = came_to_its_end(result)
            is_explained = complete or result.timed_out or disk.exceeded is not None
            was_killed = not is_explained and (result.ok or not box.running)
        if (
            not was_killed or second_try
        ):  # ended from outside: once more, unless the build itself does it
            break
    if disk.look():
        removed(disk.exceeded or build)
        most = writable[disk.exceeded or build]
        raise UnbuildableError(
            f"unbuildable: it filled more than {most >> 20} MiB of disk", log=workshop.log
        )
    if result.timed_out:
        raise DeadlineError(
            f"the build took longer than {limit_s / 60:.0f} minutes", log=workshop.log
        )
    if complete:
        return None
    output = "\n".join(
        line[:LINE] for line in plain(f"{result.stdout}\n{result.stderr}").splitlines()
    )
    if says_disk_full(output) and shutil.disk_usage(build).free < FULL_BYTES:
        raise disk_full(build)
    if result.ok or result.status > HIGHEST:
        raise UnbuildableError(
            f"the build was ended: {cause_of(output)}", log=workshop.log, lasting=False
        )
    return output


@contextmanager
def work_folder() -> Iterator[Path]:
    """Yield a folder for one build, removed at the end."""
    with temporary_folder(temporary_name(builds_home() / ".work", "package")) as folder:
        yield folder
