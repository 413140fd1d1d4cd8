"""One script of the lab in the container of a build: confined, bounded, logged."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from dsbuilds.sandbox.sandbox import Limits, bounded, came_to_its_end, confined
from dsbuilds.sandbox.untrusted_files import removed, temporary_folder, temporary_name
from dsharness.errors import DeadlineError
from dsharness.plain_text import plain
from dsharness.process.command import disk_full, says_disk_full
from dsimages.buildah import Workshop

HIGHEST = 124  # the highest status of a command; above it is the engine's or a signal's
LINE = 2000  # characters of one line
SAID_BYTES = 8 << 20  # of what a build says; its log has more
FULL_BYTES = 64 << 20  # less than this is left: the machine's disk is full, not a limit reached
INSIDE = "/usr/libexec/dsbisect-build/script"
SOURCE = "/usr/libexec/dsbisect-build/source.tar"


def unbuildable(output: str, log: Path) -> UnbuildableError:
    """The error for the output of the tools."""
    return UnbuildableError(
        f"unbuildable: {cause_of(output)} (while it ran {stage_of(output)})",
        log=log,
        lasting=not passing(output),
        toolchain=may_be_the_toolchain(output),
        compiler=may_be_the_compiler(output),
    )


def confined_run(  # noqa: PLR0913 - each is a property of one build
    at: Workshop,
    image: str,
    script: Path,
    *args: str,
    build: Path,
    source: Path | None = None,
    cache: Path | None = None,
    volumes: tuple[tuple[Path, str, str], ...] = (),
    limits: Limits,
    heard: Callable[[str], None] | None = None,
) -> str | None:
    """Run a script in /build without a network; its output if it failed, otherwise None.

    ``source`` is an archive that the script unpacks, ``cache`` a compiler cache; ``heard`` gets
    each line that it prints. What is left in ``build`` has untrusted content: read it with
    ``untrusted_files``.
    """
    mounted = ((build, "/build", "rw"), (script, INSIDE, "ro"), *volumes)
    mounted += ((source, SOURCE, "ro"),) if source else ()
    mounted += ((cache, "/build/ccache", "rw"),) if cache else ()
    writable = {build: limits.disk_bytes} | ({cache: limits.cache_bytes} if cache else {})
    limit_s = min(limits.time_s, at.deadline.left_s)
    for last in (False, True):
        with confined(
            at.engine, image,
            writable=writable, volumes=mounted, purpose="build", log=at.log, limits=limits,
        ) as (box, disk):  # fmt: skip
            done = box.execute(
                *bounded(limits, INSIDE, *args), limit_s=limit_s, keep_bytes=SAID_BYTES, heard=heard
            )
            whole = came_to_its_end(done)
            explained = whole or done.timed_out or disk.exceeded is not None
            cut = not explained and (done.ok or not box.running)
        if not cut or last:  # ended from outside: once more, unless the build itself does it
            break
    if disk.look():
        removed(disk.exceeded or build)
        most = writable[disk.exceeded or build]
        raise UnbuildableError(f"unbuildable: it filled more than {most >> 20} MiB of disk",
                               log=at.log)  # fmt: skip
    if done.timed_out:
        raise DeadlineError(f"the build took longer than {limit_s / 60:.0f} minutes", log=at.log)
    if whole:
        return None
    output = "\n".join(line[:LINE] for line in plain(f"{done.stdout}\n{done.stderr}").splitlines())
    if says_disk_full(output) and shutil.disk_usage(build).free < FULL_BYTES:
        raise disk_full(build)
    if done.ok or done.status > HIGHEST:
        raise UnbuildableError(
            f"the build was ended: {cause_of(output)}", log=at.log, lasting=False
        )
    return output


@contextmanager
def work_folder() -> Iterator[Path]:
    """A folder for one build, removed at the end."""
    with temporary_folder(temporary_name(builds_home() / ".work", "package")) as folder:
        yield folder
