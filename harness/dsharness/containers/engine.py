"""Every call of podman and buildah, with the configuration that this machine needs."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from dsharness.errors import DiskFullError, EngineError
from dsharness.paths import cache_home, logs_home
from dsharness.process.command import MOST_FILE_BYTES, NO_SPACE, Completed, run, says_disk_full
from dsharness.process.deadline import Deadline

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
    """Return whether so little can be written there now; a quota and a want of inodes count too."""
    if not place.is_dir():
        return False
    try:
        with tempfile.TemporaryFile(dir=place) as trial:
            os.posix_fallocate(trial.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        if error.errno in NO_SPACE:
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


LABEL = "dsbisect=1"
AS_IT_IS = "podman with its own configuration"
LISTING_TRIES = 5
# Only podman speaks there. Elsewhere anything that runs in a container does: a commit that prints
# that the disk is full must not end a search.
OWN_WORDS = frozenset({"commit", "import", "load", "pull", "save"})
BUILDAH_BYTES = 8 << 20  # packages' own scripts print here


T = TypeVar("T")


class ImageExchange(Protocol):
    """What machines that share a registry give each other: images by the key of what is in them.

    What goes wrong is told, and raises nothing: the machine then makes what it needs by itself.
    """

    def take(self, kind: str, key: str, reference: str, use: Callable[[], T]) -> T | None:
        """Return what ``use`` makes of another machine's image, which is here under ``reference``.

        None where there is none, or where it is not what it should be.
        """
        ...

    def give(
        self, kind: str, key: str, lay: Callable[[], AbstractContextManager[str]], *, is_new: bool
    ) -> None:
        """Let others have what was made here; what was found only if they have none yet.

        ``lay`` is called if it is wanted: the reference of the image, as long as it is needed.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A container engine that is known to start containers here."""

    podman_version: str
    rootless: bool
    cgroups: str  # "v1" or "v2"
    runtime: str
    pins_cpus: bool
    limits_memory: bool
    moves_cpus: bool = False  # it can give a running container other CPUs
    configuration: Path | None = None
    build_flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())  # what did not work before what does
    works_with: str = AS_IT_IS
    exchange: ImageExchange | None = field(default=None, compare=False)  # with other machines

    @property
    def environment(self) -> Mapping[str, str]:
        """What a child process needs to reach the same engine."""
        return {"CONTAINERS_CONF": str(self.configuration)} if self.configuration else {}

    def podman(  # noqa: PLR0913 - each is a property of one process
        self,
        *args: str,
        deadline: Deadline | None = None,
        stdin: str | None = None,
        log: Path | None = None,
        cleanup: bool = False,
        keep_bytes: int | None = None,
        behind: tuple[str, ...] = (),
        on_line: Callable[[str], None] | None = None,
        into: Path | None = None,
        into_bytes: int = MOST_FILE_BYTES,
    ) -> Completed:
        """Run podman, ``behind`` another program's words if there are some."""
        return self._call(
            "podman",
            args,
            deadline,
            stdin,
            log,
            cleanup=cleanup,
            keep_bytes=keep_bytes,
            behind=behind,
            on_line=on_line,
            into=into,
            into_bytes=into_bytes,
        )

    def buildah(
        self,
        *args: str,
        deadline: Deadline | None = None,
        stdin: str | None = None,
        log: Path | None = None,
        cleanup: bool = False,
    ) -> Completed:
        return self._call(
            "buildah", args, deadline, stdin, log, cleanup=cleanup, keep_bytes=BUILDAH_BYTES
        )

    def must(self, *args: str, deadline: Deadline | None = None, log: Path | None = None) -> str:
        """Return podman's standard output, or raise an EngineError with its message."""
        result = self.podman(*args, deadline=deadline, log=log)
        if not result.ok:
            raise EngineError(
                f"podman {args[0]} failed: {last_line(result)}",
                hint="`dsbisect doctor` checks the container engine",
                log=log,
            )
        return result.stdout.strip()

    def images(self, *flags: str) -> str:
        """What `podman images` lists; it stumbles over an image that goes meanwhile, so again."""
        for _ in range(LISTING_TRIES):
            result = self.podman("images", *flags)
            if result.ok:
                return result.stdout.strip()
            if "image not known" not in result.stderr:
                break
        return self.must("images", *flags)

    def _call(  # noqa: PLR0913 - each is a property of one process
        self,
        program: str,
        args: tuple[str, ...],
        deadline: Deadline | None,
        stdin: str | None,
        log: Path | None,
        *,
        cleanup: bool,
        keep_bytes: int | None,
        behind: tuple[str, ...] = (),
        on_line: Callable[[str], None] | None = None,
        into: Path | None = None,
        into_bytes: int = MOST_FILE_BYTES,
    ) -> Completed:
        places = self._disks() if program == "buildah" and args[0] == "build" else ()
        with least_room(places) as room:
            result = run(
                [*behind, program, *args],
                cwd=_quiet_folder(),
                deadline=deadline,
                stdin=stdin,
                env=self.environment,
                log=log,
                cleanup=cleanup,
                keep_bytes=keep_bytes,
                on_line=on_line,
                into=into,
                into_bytes=into_bytes,
            )
        # If the clean-up also finds the disk full, keep the first error.
        if (
            not result.ok
            and not cleanup
            and says_disk_full(f"{result.stdout}\n{result.stderr}")
            and (args[0] in OWN_WORDS or room.is_short or any(map(no_room, self._disks())))
        ):
            raise DiskFullError(
                f"no space left while {program} ran {args[0]}",
                hint="`dsbisect clean --images` frees what the lab made; "
                "the next run resumes where this one stopped",
                log=log,
            )
        if result.status < 0 and not result.timed_out and not cleanup:
            raise EngineError(
                f"{program} {args[0]} was killed by signal {-result.status}",
                hint="was there too little memory? The same command continues from what is stored",
                log=log,
            )
        return result

    def _disks(self) -> tuple[Path, ...]:
        """Return where the engine, and what runs in its containers, writes."""
        command = ["podman", "info", "--format", "{{.Store.GraphRoot}}\n{{.Store.RunRoot}}"]
        result = run(command, env=self.environment, cleanup=True)
        own = [Path(line) for line in result.stdout.splitlines()] if result.ok else []
        temporary = Path(os.environ.get("TMPDIR") or "/var/tmp")  # noqa: S108 - the engine's own
        return *own, temporary, cache_home()


def _quiet_folder() -> Path | None:
    """Of a container without memory, conmon leaves a file ``oom`` where podman was called."""
    return next((folder for folder in (logs_home(), cache_home()) if folder.is_dir()), None)


def last_line(result: Completed) -> str:
    """Return the line of a failed command that most likely says why."""
    if result.timed_out:
        return "it timed out"
    if result.overflowed:
        return "its output is too large"
    lines = [line for line in (result.stderr or result.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("Error", "error", "E:"))]
    return (errors or lines or [f"exit status {result.status}"])[-1]
