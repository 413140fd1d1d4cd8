"""How a user names a source on the command line. Core pure logic."""

from __future__ import annotations

import re

from dsharness.model import (
    DistributionSource,
    GitSource,
    SourceSpec,
    SrpmSource,
    TarballSource,
)

ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2|txz)$")
NVR = re.compile(r"389-ds-base-[^-/@]+-[^-/@]+")


def source_named(text: str | None) -> SourceSpec:
    """An SRPM, an archive, a repository with a revision; nothing is the distribution's own."""
    if text is None:
        return DistributionSource()
    if text.endswith(".src.rpm") or NVR.fullmatch(text):
        return SrpmSource(location=text)
    if ARCHIVE.search(text):
        return TarballSource(location=text)
    url, at, revision = text.rpartition("@")
    if not at or "/" in revision.partition("/")[0] or not url:
        return GitSource(url=text, revision="HEAD")
    return GitSource(url=url, revision=revision)
