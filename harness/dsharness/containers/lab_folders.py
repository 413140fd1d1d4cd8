"""Measuring and removing the lab's own folders, and no others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from dsharness.errors import UsageError
from dsharness.process.command import writing


def private(folder: Path) -> Path:
    """A folder of the lab's own, made when it is not there, and closed to other users."""
    with writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077 and folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)
    return folder


def refuse_precious(folder: Path, precious: Sequence[Path]) -> None:
    """UsageError when removing a folder would take one of these with it."""
    real = folder.resolve()
    for path in precious:
        if path.resolve().is_relative_to(real):
            raise UsageError(
                f"the cache folder {folder} holds {path}, which is not the lab's to remove",
                hint="let DSBISECT_CACHE name a folder that nothing else uses",
            )


def folder_bytes(folder: Path) -> int:
    """Bytes on disk of all files below; what vanishes meanwhile counts nothing."""
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
