"""What a tree needs to be built, read from the tree itself and never from its version."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from dsharness.errors import BuildError

Files = Callable[[str], "str | None"]

CARGO_LOCK = "src/Cargo.lock"
M4 = ("m4/pcre.m4", "m4/openldap.m4", "m4/db.m4")


class Crates(StrEnum):
    """Where a tree's Rust crates come from."""

    NONE = "none"  # there is no Rust in it
    LOCKED = "locked"  # Cargo.lock names each with its checksum
    SYSTEM = "system"  # whatever the toolchain's distribution packages


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Words of a toolchain's ``offers``, and what configure is to be told."""

    words: frozenset[str]
    crates: Crates
    flags: tuple[str, ...]


def needs_of(files: Files) -> Needs:
    """Look into a tree; BuildError when it is none of 389-ds."""
    configure = files("configure.ac")
    if configure is None or files("ldap/servers/slapd/main.c") is None:
        raise BuildError(
            "unbuildable: no 389-ds source: configure.ac or ldap/servers/slapd/main.c is missing",
            hint="name a repository of 389-ds-base",
        )
    checks = "\n".join([configure, *(files(path) or "" for path in M4)])
    rust = re.search(r"\bRUSTC\b|enable[_-]rust\b|AC_ARG_ENABLE\(\s*\[?rust\b", checks) is not None
    lock = files(CARGO_LOCK)
    crates = Crates.NONE if not rust else Crates.SYSTEM if lock is None else Crates.LOCKED
    words = {"gcc", "pcre2" if "libpcre2" in checks else "pcre1"}
    words |= {"rust"} if rust else set()
    words |= {"system-crates"} if crates is Crates.SYSTEM else set()
    words |= {"cargo-lock-4"} if lock and re.search(r"^version = 4$", lock, re.MULTILINE) else set()
    words |= {"lmdb"} if "lmdb" in checks else set()
    words |= {"json-c"} if re.search(r"json[_-]c", checks) else set()
    return Needs(words=frozenset(words), crates=crates, flags=_flags(configure, rust=rust))


def _flags(configure: str, *, rust: bool) -> tuple[str, ...]:
    """One set for all eras; only what this configure.ac knows is passed."""
    wished = {
        "openldap": "--with-openldap",
        "autobind": "--enable-autobind",
        "rust": "--enable-rust",
        "systemd": "--without-systemd",
        "cockpit": "--disable-cockpit",
        "perl": "--disable-perl",
        "legacy": "--disable-legacy",
    }
    always = {"openldap", "systemd"}  # asked for in m4 files of their own
    known = re.findall(r"AC_ARG_(?:ENABLE|WITH)\(\s*\[?([\w-]+)", configure)
    optional = {name for name in known if name != "rust" or rust}
    chosen = [flag for name, flag in wished.items() if name in optional | always]
    return ("--prefix=/opt/dirsrv", *chosen)
