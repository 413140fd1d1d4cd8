"""Folders that end with their process: killed outright, the next one removes what is left."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dsbuilds.sandbox.untrusted_files import removed
from dsharness.containers.lab_folders import YOUNG_S, locked_folder
from dsharness.process.command import writing


def temporary_name(parent: Path, kind: str) -> Path:
    return parent / f"{kind}-{secrets.token_hex(6)}"


@contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Make it, and remove it at the end; ``folder`` has a ``temporary_name``."""
    _remove_left(folder.parent, folder.name.rpartition("-")[0])
    with writing(folder):
        folder.mkdir(parents=True)
    with locked_folder(folder):
        try:
            yield folder
        finally:
            removed(folder)


def _remove_left(parent: Path, kind: str) -> None:
    """All that no process holds any more; the kernel releases a lock however its process ends."""
    for folder in parent.glob(f"{kind}-*"):
        with contextlib.suppress(OSError):  # another process may be removing it
            if time.time() - folder.stat().st_mtime > YOUNG_S:
                with locked_folder(folder):
                    removed(folder)
