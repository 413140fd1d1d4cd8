"""Versions of packages, of Debian's kind and of RPM's: what upstream calls them. Pure."""

from __future__ import annotations


def upstream(version: str) -> str:
    """2:3.1.2+dfsg1-1+deb13u1 and 3.1.2-3.fc41 are both upstream's 3.1.2; 3.1.2~rc1-1 is not."""
    without_epoch = version.partition(":")[2] or version
    without_revision = without_epoch.rpartition("-")[0] or without_epoch
    return without_revision.partition("+")[0].partition("~dfsg")[0]


def answers(version: str, wish: str) -> bool:
    """Whether an installed version is the one wished for, spelled in full or as upstream does."""
    bare = version.partition(":")[2] or version
    return wish in {version, bare, upstream(version)} or bare.startswith(f"{wish}-")
