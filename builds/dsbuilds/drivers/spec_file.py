"""Edits of a spec file: further patches, our own release and changelog. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsbuilds.drivers.debian_files import WHO, one_line
from dsharness.errors import EditError, SourceError

SUFFIX = ".dsbisect1"
FIRST = 9001  # of our patches: beyond what packagers number
SECTION = re.compile(
    r"^%(description|package|prep|generate_buildrequires|conf|build|install|check|clean|files"
    r"|changelog|pre|post|preun|postun|pretrans|posttrans|trigger\w*|verifyscript|sepolicy)\b"
)
TAGGED = re.compile(r"^(Patch|Source)(?P<number>\d*)\s*:", re.IGNORECASE)
OPENS = re.compile(r"^%if")
CLOSES = re.compile(r"^%endif\b")
RELEASE = re.compile(r"^(?P<tag>Release\s*:\s*)(?P<value>\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
AUTOMATIC = re.compile(r"^%auto(setup|patch)\b(?P<rest>.*)$")
BY_HAND = re.compile(r"^%(setup|patch)")
CHANGELOG = re.compile(r"^%changelog\b[^\n]*(\n|\Z)", re.MULTILINE)
ENTRY = re.compile(
    r"^\*\s+(?P<date>[A-Z][a-z]{2}\s+[A-Z][a-z]{2}\s+\d+\s+(?:\d\d:\d\d:\d\d\s+\S+\s+)?\d{4})\s",
    re.MULTILINE,
)
FIRST_DATE = "Fri Jan 01 2010"  # where there is no entry before ours: a date that stays
FULL_VERSION = "%{?epoch:%{epoch}:}%{version}-%{release}"


def with_patches(spec: str, names: Sequence[str]) -> str:
    """The spec with patches that %prep applies as the last ones, with -p1."""
    if not names:
        return spec
    lines = spec.splitlines()
    numbers = list(range(FIRST, FIRST + len(names)))
    tagged = _tagged(lines)
    taken = {int(found["number"]) for found in tagged.values() if found["number"]}
    if taken & set(numbers):
        raise SourceError(
            f"the spec has a Patch{min(taken & set(numbers))} already",
            hint="it was built by this lab before: start from the packager's own",
        )
    place = _preamble_end(lines, max(tagged, default=None))
    tags = [f"Patch{number}: {name}" for number, name in zip(numbers, names, strict=True)]
    first, last = _prep(lines)
    applied = _applied(lines[first:last], numbers)
    return "\n".join([*lines[:place], *tags, *lines[place:first], *applied, *lines[last:], ""])


def with_release(spec: str) -> str:
    """The spec with a release that sorts right after the packager's."""
    found = RELEASE.search(spec)
    if found is None:
        raise SourceError("the spec has no Release", hint="name an SRPM that rpmbuild takes")
    return f"{spec[: found.end('value')]}{SUFFIX}{spec[found.end('value') :]}"


def with_changelog(spec: str, changes: Sequence[str]) -> str:
    """The spec with an entry on top; its date is the last one's, so that builds repeat."""
    section = CHANGELOG.search(spec)
    last = ENTRY.search(spec, section.end()) if section else None
    date = last["date"] if last else FIRST_DATE
    # Macros are expanded in a changelog too.
    said = [one_line(change).replace("%", "%%") for change in changes or ("Rebuilt as it is.",)]
    entry = "\n".join([f"* {date} {WHO} - {FULL_VERSION}", *(f"- {each}" for each in said), "", ""])
    if section is None:
        end = "" if not spec or spec.endswith("\n") else "\n"
        return f"{spec}{end}\n%changelog\n{entry}"
    heading = spec[: section.end()]
    end = "" if heading.endswith("\n") else "\n"
    return f"{heading}{end}{entry}{spec[section.end() :]}"


def _tagged(lines: list[str]) -> dict[int, re.Match[str]]:
    """Line -> the source or patch that it names; texts and scripts may hold such words too."""
    found: dict[int, re.Match[str]] = {}
    tags = True
    for at, line in enumerate(lines):
        section = SECTION.match(line)
        if section is not None:
            tags = section[1] == "package"
        elif tags and (tag := TAGGED.match(line)) is not None:
            found[at] = tag
    return found


def _preamble_end(lines: list[str], last: int | None) -> int:
    """After the last source or patch, outside any %if that it stands in."""
    if last is None:
        return next((at for at, line in enumerate(lines) if SECTION.match(line)), len(lines))
    return _outside(lines, last + 1)


def _prep(lines: list[str]) -> tuple[int, int]:
    first = next((at for at, line in enumerate(lines) if re.match(r"^%prep\b", line)), None)
    if first is None:
        raise SourceError("the spec has no %prep", hint="name an SRPM that rpmbuild takes")
    later = range(first + 1, len(lines))
    last = next((at for at in later if SECTION.match(lines[at])), len(lines))
    return first, last


def _applied(prep: list[str], numbers: Sequence[int]) -> list[str]:
    """%prep, with our patches applied by it unless it applies every patch by itself."""
    automatic = [found for line in prep if (found := AUTOMATIC.match(line))]
    # -N applies none; -m and -M apply a range, which ends before our numbers.
    applying = [found for found in automatic if not re.search(r"\s-[NmM]\b", found["rest"])]
    if applying:
        rest = applying[-1]["rest"]
        if not re.search(r"\s-p\s*1\b", rest):
            raise EditError(
                f"the spec applies its patches by {applying[-1][0].strip()!r}, not with -p1",
                hint="patches of this lab are made for -p1: give %autosetup -p1",
            )
        return prep
    places = [at for at, line in enumerate(prep) if BY_HAND.match(line) or AUTOMATIC.match(line)]
    place = _outside(prep, max(places) + 1 if places else len(prep))
    ours = [f"%patch -P {number} -p1" for number in numbers]
    return [*prep[:place], *ours, *prep[place:]]


def _outside(lines: list[str], place: int) -> int:
    """The first line from there that stands in no %if."""
    depth = sum(1 if OPENS.match(x) else -1 if CLOSES.match(x) else 0 for x in lines[:place])
    while depth > 0 and place < len(lines):
        depth += 1 if OPENS.match(lines[place]) else -1 if CLOSES.match(lines[place]) else 0
        place += 1
    return place
