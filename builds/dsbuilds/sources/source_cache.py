"""Sources on disk: fetched once, found again by key, whole or not at all."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from pathlib import Path

from dsharness.containers.lab_folders import private
from dsharness.paths import cache_home
from dsharness.process.command import writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive


def shelved(kind: str, key: str, deadline: Deadline, fill: Callable[[Path], None]) -> Path:
    """The folder of that key; ``fill`` gets an empty one when there is none yet."""
    shelf = private(cache_home() / "sources") / kind
    folder = shelf / key
    with exclusive(shelf / f"{key}.lock", deadline):
        if folder.is_dir():
            return folder
        draft = shelf / f".draft-{secrets.token_hex(6)}"
        try:
            with writing(draft):
                draft.mkdir(parents=True)
                fill(draft)
                draft.rename(folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return folder
