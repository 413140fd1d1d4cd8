"""Which tree a source package unpacks to, so that it is unpacked once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dsbuilds.sources.source_tree import Tree, own_repository
from dsharness.content_key import content_key
from dsharness.paths import cache_home
from dsharness.process.command import atomic_write


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
