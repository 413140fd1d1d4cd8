"""The newest entry of a package's changelog. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Iterable

DEB_END = re.compile(r"^ -- ", re.MULTILINE)
RPM_NEXT = re.compile(r"^\* ", re.MULTILINE)


def newest_entry(changelog: str) -> tuple[str, ...]:
    """The lines of the first entry, of Debian's kind or of RPM's; () where there is none."""
    text = changelog.lstrip()
    following = RPM_NEXT.search(text, 2) if text.startswith("* ") else DEB_END.search(text)
    entry = text[: following.start()] if following else text
    return tuple(line.rstrip() for line in entry.splitlines() if line.strip())


def unnamed(entry: Iterable[str], patches: Iterable[str]) -> tuple[str, ...]:
    """The patches that the entry does not name."""
    said = "\n".join(entry)
    return tuple(name for name in patches if name not in said)
