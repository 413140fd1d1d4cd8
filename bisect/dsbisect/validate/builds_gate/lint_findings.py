"""Findings of lintian and rpmlint, and which of them are new. Core pure logic."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LINTIAN = re.compile(
    r"^(?P<severity>[EW]): (?P<package>[^\s:]+)(?: \w+)?: (?P<tag>\S+)(?: (?P<detail>.*))?$"
)
RPMLINT = re.compile(
    r"^(?P<package>[^\s:]+)(?::\d+)?: (?P<severity>[EW]): (?P<tag>\S+)(?: (?P<detail>.*))?$"
)
LINES = {"deb": LINTIAN, "rpm": RPMLINT}
# What is wrong with the changelog entry that the lab makes, and not with the patch.
OF_THE_LAB = {
    "bogus-mail-host-in-debian-changelog": "the lab's changelog entry is by dsbisect@localhost",
    "latest-changelog-entry-without-new-date": "the lab's changelog entry has the last one's date",
    "debian-changelog-line-too-long": "the lab's changelog entry has a line for each patch",
}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of a linter."""

    severity: str  # E or W
    package: str
    tag: str
    detail: str
    line: str


def findings(kind: str, text: str) -> tuple[Finding, ...]:
    """Errors and warnings of lintian's (deb) or rpmlint's (rpm) output; all else is passed over."""
    found = []
    for line in text.splitlines():
        match = LINES[kind].match(line.rstrip())
        if match is not None:
            parts = match.groupdict(default="")
            found.append(Finding(**parts, line=line.strip()))
    return tuple(found)


def new_findings(
    stock: Iterable[Finding], patched: Iterable[Finding], versions: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Those of the patched packages that stock does not have, as often as it does not.

    ``versions``: findings repeat the versions of both sides; each -> what stands for it.
    """
    known = Counter(_same(each, versions) for each in stock)
    new = []
    for each in patched:
        key = _same(each, versions)
        if known[key] > 0:
            known[key] -= 1
        else:
            new.append(each)
    return tuple(new)


def _same(finding: Finding, versions: Mapping[str, str]) -> tuple[str, str, str, str]:
    detail = finding.detail
    for version in sorted(versions, key=len, reverse=True):
        detail = detail.replace(version, versions[version])
    return finding.severity, finding.package, finding.tag, detail
