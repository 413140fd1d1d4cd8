"""Two builds of one source, compared: packages by hash, and what is said of their files. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# What follows from other differences: checksums of the files, and the sizes of all.
DERIVED = ("./DEBIAN/control", "./DEBIAN/md5sums")
CHANGED = re.compile(r"^[│ ]*[-+](?!-- |\+\+ )")


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One package of two builds."""

    package: str
    files: tuple[str, ...] = ()  # that differ
    with_path: tuple[str, ...] = ()  # that hold the place where they were built
    report: str = ""  # diffoscope's


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, ...]:
    """File names of packages whose hash differs, or that only one of the builds made."""
    return tuple(name for name in sorted({*first, *second}) if first.get(name) != second.get(name))


def difference_of(package: str, said: Mapping[str, str]) -> Difference:
    """What the script left of one package."""
    files = tuple(said.get(f"{package}.files", "").split())
    return Difference(
        package=package,
        files=tuple(file for file in files if file not in DERIVED) or files,
        with_path=tuple(said.get(f"{package}.paths", "").splitlines()),
        report=said.get(f"{package}.txt", ""),
    )


def changed_lines(report: str) -> tuple[str, ...]:
    """The lines of the report that one side has and the other has not."""
    return tuple(line.strip() for line in report.splitlines() if CHANGED.match(line))
