"""How a user names a source on the command line: relative paths end here."""

from __future__ import annotations

import re
from pathlib import Path

from dsharness.model import (
    DistributionSource,
    GitSource,
    SourceSpec,
    SrpmSource,
    TarballSource,
)

ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2|txz)$")
NVR = re.compile(r"389-ds-base-[^-/@]+-[^-/@]+")
# Up to here no @ can mean a revision: scheme://user@host, or git's short form user@host:
HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*|(?:[^/@:\s]+@)?[^/@:\s]+:", re.IGNORECASE)


def source_named(text: str | None) -> SourceSpec:
    """An SRPM, an archive, a repository with a revision; nothing is the distribution's own."""
    if text is None:
        return DistributionSource()
    if text.endswith(".src.rpm") or NVR.fullmatch(text):
        return SrpmSource(location=_whole(text))
    if ARCHIVE.search(text):
        return TarballSource(location=_whole(text))
    url, revision = _apart(text)
    return GitSource(url=_whole(url), revision=revision)


def _apart(text: str) -> tuple[str, str]:
    """A repository and its revision; a folder may have an @ in its name."""
    host = HOST.match(text)
    begin = host.end() if host else 0
    path, at, revision = text[begin:].rpartition("@")
    if not at or not path or not revision or (host is None and Path(text).exists()):
        return text, "HEAD"
    return text[:begin] + path, revision


def _whole(location: str) -> str:
    """The full path of what is here; podman reads a relative one as the name of a volume."""
    path = Path(location).expanduser()
    here = HOST.match(location) is None and path.exists()
    return str(path.absolute()) if here else location
