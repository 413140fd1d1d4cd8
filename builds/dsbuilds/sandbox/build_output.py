"""A build's output, copied by the lab: with its own modes, links unchanged.

A rename would keep what the build can still reach or has marked: open files, hard links to other
places, setuid bits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from dsbuilds.failure_reason import UnbuildableError
from dsbuilds.sandbox.untrusted_files import Entry, entries
from dsharness.content_key import content_key, file_sha256
from dsharness.process.command import writing

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~:^%-]{0,250}")

Keep = Callable[[Entry], bool]


def copy_output(folder: Path, *parts: str, target: Path, keep: Keep | None = None) -> None:
    """Copy what ``parts`` lead to below ``folder``; UnbuildableError if it is not a folder.

    Files, and links that stay inside; pipes, devices and links that lead out are left behind.
    """
    try:
        with writing(target):
            target.mkdir()
            for entry in entries(folder, *parts):
                if keep is None or keep(entry):
                    _take(entry, target / entry.path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UnbuildableError(f"unbuildable: it left no folder {'/'.join(parts)}") from error


def plain_file(entry: Entry, *, below: tuple[str, ...] = ("",)) -> bool:
    """Whether it is a plainly named file in one of these folders; UnbuildableError when not."""
    folder, _, name = entry.path.rpartition("/")
    if not entry.is_file or folder not in below or PLAIN.fullmatch(name) is None:
        raise UnbuildableError(f"it left {entry.path!r}, where only files with plain names may be")
    return True


def stays_inside(path: str, leads_to: str) -> bool:
    """Whether a link can be followed from the top without ever leaving it."""
    parts = PurePosixPath(leads_to).parts
    up = len([part for part in parts if part == ".."])
    # After a name, "..": what the name stands for may be a link itself.
    return not leads_to.startswith("/") and up <= path.count("/") and ".." not in parts[up:]


def _take(entry: Entry, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if entry.is_link and stays_inside(entry.path, entry.leads_to):
        target.symlink_to(entry.leads_to)
    elif entry.is_file:
        with target.open("xb") as out:
            entry.copy(out)
        target.chmod(0o755 if entry.runs else 0o644)


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
    return runs + file_sha256(path)
