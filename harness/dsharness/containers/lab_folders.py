"""Measuring and removing the lab's own folders, and no others."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dsharness.errors import UsageError
from dsharness.guarded_files import FOLDER
from dsharness.process.command import writing

SCRATCH = "dsbisect-tmp-"
YOUNG_S = 60.0  # one that was just made may not be locked yet


def private(folder: Path) -> Path:
    """Return a folder of the lab's own, made when it is not there, and closed to other users."""
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)
    return folder


@contextmanager
def scratch_folder(kind: str, place: Path | None = None) -> Iterator[Path]:
    """A private folder, removed at the end; one whose process was killed goes with the next one."""
    parent = place or Path(tempfile.gettempdir())
    _remove_left(parent)
    with writing(parent):
        folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{kind}-", dir=parent))
    try:
        with locked_folder(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(parent: Path) -> None:
    """Return this user's folders that no process holds any more."""
    for folder in parent.glob(f"{SCRATCH}*"):
        with contextlib.suppress(OSError):  # another process may be removing it
            facts = folder.lstat()
            own = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
            if own and time.time() - facts.st_mtime > YOUNG_S:
                with locked_folder(folder):
                    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Raise BlockingIOError, which is an OSError, if a process has it.

    The kernel releases the lock however a process ends.
    """
    descriptor = os.open(folder, FOLDER)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def refuse_precious(folder: Path, precious: Sequence[Path]) -> None:
    """Raise UsageError when removing a folder would take one of these with it."""
    real = folder.resolve()
    for path in precious:
        if path.resolve().is_relative_to(real):
            raise UsageError(
                f"the cache folder {folder} holds {path}, which is not the lab's to remove",
                hint="let DSBISECT_CACHE name a folder that nothing else uses",
            )


def folder_bytes(folder: Path) -> int:
    """Return bytes on disk of all files below; what vanishes meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512  # noqa: PTH118
            except OSError:
                continue
    return total


def remove_path(path: Path) -> str:
    """Remove a file or a folder; empty on success, otherwise the reason."""
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{error.strerror}: {error.filename}"
    return ""
