"""Debian's changelog, patch series and patch headers. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from debian.changelog import Changelog, ChangelogParseError

from dsharness.errors import SourceError

WHO = "dsbisect <dsbisect@localhost>"
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
    try:
        last = Changelog(changelog, max_blocks=1, strict=True)[0]
    except ChangelogParseError as error:
        raise SourceError(
            f"debian/changelog has no entry that can be read: {error}",
            hint="`dpkg-parsechangelog` in the unpacked source says what is wrong with it",
        ) from error
    lines = [f"  * {one_line(change)}" for change in changes or ("Rebuilt as it is.",)]
    ours = Changelog()
    ours.new_block(
        package=last.package,
        version=suffixed(str(last.version)),
        distributions=last.distributions,
        urgency="medium",
        changes=["", *lines, ""],
        author=WHO,
        date=last.date,
    )
    return f"{ours}\n{changelog}"


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
    return f"From: {WHO}\nSubject: {one_line(title)}\nForwarded: not-needed\n\n---\n{text}"


def one_line(text: str) -> str:
    """A title as an entry or a header takes it."""
    return " ".join(text.split())
