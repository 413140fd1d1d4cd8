"""What a folder holds, as one hash: equal builds serve equally."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dsharness.content_key import content_key


def content_of(folder: Path) -> str:
    """Path, kind and content of every file; neither owners nor times, and no link is followed."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in [*files, *(each for each in folders if Path(place, each).is_symlink())]:
            path = Path(place, name)
            found[str(path.relative_to(folder))] = _fingerprint(path)
    return content_key(found)


def _fingerprint(path: Path) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if not path.is_file():
        return "special"
    runs = "x" if path.stat().st_mode & 0o111 else "-"
    with path.open("rb") as stream:
        return runs + hashlib.file_digest(stream, "sha256").hexdigest()
