"""Sources on disk, found again by key: fetched once, unpacked once, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dsbuilds.sandbox.temporary_folder import temporary_folder, temporary_name
from dsbuilds.sources.source_tree import Tree, own_repository
from dsharness.containers.lab_folders import private
from dsharness.content_key import content_key
from dsharness.paths import cache_home
from dsharness.process.command import atomic_write, writing
from dsharness.process.deadline import Deadline
from dsimages.file_lock import exclusive


def shelved(kind: str, key: str, deadline: Deadline, fill: Callable[[Path], None]) -> Path:
    """The folder of that key; ``fill`` gets an empty one when there is none yet."""
    shelf = private(cache_home() / "sources") / kind
    folder = shelf / key
    with exclusive(shelf / f"{key}.lock", deadline):
        if folder.is_dir():
            return folder
        with temporary_folder(temporary_name(shelf, ".draft")) as draft, writing(draft):
            fill(draft)
            draft.rename(folder)
    return folder


def recorded(identity: str, origin: str, revision: str, unpacked: Callable[[], Tree]) -> Tree:
    """The tree of that identity: known, or unpacked now."""
    record = _record(identity)
    git = own_repository()
    try:
        known = record.read_text(encoding="utf-8").strip()
    except OSError:
        known = ""
    if known and git.call("cat-file", "-e", f"{known}^{{tree}}").ok:
        return Tree(git=git, id=known, origin=origin, revision=revision)
    tree = unpacked()
    atomic_write(record, f"{tree.id}\n")
    return Tree(git=tree.git, id=tree.id, origin=origin, revision=revision)


def _record(identity: str) -> Path:
    return cache_home() / "sources" / "trees" / content_key(identity)
