"""Two builds of one source, compared: packages by hash, and what diffoscope says. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

FILE = re.compile(r"^[│ ]*[├└]── (?P<path>\.?/\S.*?)\s*$", re.MULTILINE)
# What follows from the other differences: checksums of the files, and the sizes of all.
DERIVED = ("./control", "./md5sums", "./DEBIAN/")
PLACE = "/build/another/"
CHANGED = re.compile(r"^[│ ]*[-+](?!-- |\+\+ )", re.MULTILINE)


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, ...]:
    """File names of packages whose hash differs, or that only one of the builds made."""
    return tuple(name for name in sorted({*first, *second}) if first.get(name) != second.get(name))


def differing_files(report: str) -> tuple[str, ...]:
    """The files inside a package that differ, as diffoscope's text report names them."""
    found = dict.fromkeys(match["path"] for match in FILE.finditer(report))
    return tuple(path for path in found if not path.startswith(DERIVED))


def embeds_path(reports: Sequence[str]) -> bool:
    """Whether the place of the second build stands in what differs."""
    return any(PLACE in line for report in reports for line in changed_lines(report))


def changed_lines(report: str) -> tuple[str, ...]:
    """The lines of the report that one side has and the other has not."""
    return tuple(line.strip() for line in report.splitlines() if CHANGED.match(line))
