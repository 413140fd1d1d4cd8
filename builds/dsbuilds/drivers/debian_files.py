"""Debian's changelog, patch series and patch headers. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsharness.errors import SourceError

WHO = "dsbisect <dsbisect@localhost>"
HEAD = re.compile(r"^(?P<name>\S+) \((?P<version>[^\s()]+)\) (?P<suite>[^;\n]+);", re.MULTILINE)
SIGNED = re.compile(r"^ -- .*>  (?P<when>.+)$", re.MULTILINE)
OURS = re.compile(r"\+dsbisect(?P<count>\d+)$")
HEADERS = re.compile(r"^(From|Author|Subject|Description|Origin):", re.MULTILINE)
DIFF = re.compile(r"^(--- |diff |Index: )", re.MULTILINE)


def suffixed(version: str) -> str:
    """A version that sorts right after the archive's, its rebuilds and its stable updates."""
    ours = OURS.search(version)
    if ours is None:
        return f"{version}+dsbisect1"
    return f"{version[: ours.start()]}+dsbisect{int(ours['count']) + 1}"


def with_entry(changelog: str, changes: Sequence[str]) -> str:
    """The changelog with an entry on top; its date is the last one's, so that builds repeat."""
    head, signed = HEAD.search(changelog), SIGNED.search(changelog)
    if head is None or signed is None:
        raise SourceError(
            "debian/changelog has no entry that can be read",
            hint="`dpkg-parsechangelog` in the unpacked source says what is wrong with it",
        )
    lines = "\n".join(f"  * {_one_line(change)}" for change in changes or ("Rebuilt as it is.",))
    version = suffixed(head["version"])
    return (
        f"{head['name']} ({version}) {head['suite']}; urgency=medium\n\n"
        f"{lines}\n\n -- {WHO}  {signed['when']}\n\n{changelog}"
    )


def with_patches(series: str, names: Sequence[str]) -> str:
    """The quilt series with further patches, as the last ones."""
    known = {line.split()[0] for line in series.splitlines() if line.split("#")[0].strip()}
    taken = [name for name in names if name in known]
    if taken:
        raise SourceError(
            f"debian/patches/series has a {taken[0]} already",
            hint="call the patch something else",
        )
    end = "" if not series or series.endswith("\n") else "\n"
    return series + end + "".join(f"{name}\n" for name in names)


def headed(title: str, text: str) -> str:
    """The patch with a header that quilt (DEP-3) and git am both read; one that it has stays."""
    diff = DIFF.search(text)
    if HEADERS.search(text[: diff.start()] if diff else text):
        return text
    return f"From: {WHO}\nSubject: {_one_line(title)}\nForwarded: not-needed\n\n---\n{text}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
