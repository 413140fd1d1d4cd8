"""What a tree needs to be built, read from the tree itself and never from its version."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache

from dsbuilds.toolchains.eras import eras
from dsbuilds.toolchains.traits import Crates, Files
from dsharness.errors import BuildError

SERVER = ("configure.ac", "ldap/servers/slapd/main.c")


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a toolchain must offer, and what configure and the build are to be told."""

    words: frozenset[str]
    crates: Crates
    flags: tuple[str, ...]
    settings: tuple[str, ...] = ()  # NAME=VALUE
    optional: frozenset[str] = frozenset()  # parts that the tree can be built without
    notes: tuple[str, ...] = ()  # what a reader of a result should know of the build


def needs_of(files: Files, left_out: AbstractSet[str] = frozenset()) -> Needs:
    """Look into a tree; BuildError when it is none of 389-ds.

    ``left_out`` names optional parts that it is to be built without.
    """
    if any(files(path) is None for path in SERVER):
        raise BuildError(
            f"unbuildable: no 389-ds source: {' or '.join(SERVER)} is missing",
            hint="name a repository of 389-ds-base",
        )
    given = [trait.gives for trait in eras().of(cache(files), left_out)]
    crates = [each.crates for each in given if each.crates is not None]
    return Needs(
        words=frozenset(word for each in given for word in each.offers),
        crates=crates[-1] if crates else Crates.NONE,
        flags=tuple(flag for each in given for flag in each.flags),
        settings=tuple(setting for each in given for setting in each.settings),
        optional=frozenset(each.optional for each in given if each.optional is not None),
        notes=tuple(each.note for each in given if each.note is not None),
    )
