"""The tagged releases of a product, as a series of branches.

The branches are read off the versions and dates, since upstream's branches run in parallel and take
the same backports.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Annotated

import pydantic

from dsharness.errors import MatrixError
from dsharness.model import Series, Value
from dsharness.products import product, release_files
from dsharness.products.product import ReleaseFacts

Tag = Annotated[str, pydantic.Field(pattern=r"^\d+\.\d+[0-9.-]*$", max_length=64)]
COLUMNS = ("version", "date", "commit")


class Release(Value):
    """One tag."""

    version: Tag
    date: date
    commit: str
    branch: str
    shown: str

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", self.version))


def load_releases(where: Path, facts: ReleaseFacts) -> tuple[Release, ...]:
    """Every release of the table, by version; MatrixError with the line that is wrong."""
    try:
        with where.open(encoding="utf-8", newline="") as stream:
            table = csv.DictReader(stream)
            read = [_release(f"{where}:{table.line_num}", record, facts) for record in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MatrixError(f"{where}: cannot be read: {error}") from error
    if not read:
        raise MatrixError(f"{where}: no release; a line for each tag is needed")
    versions = [release.version for release in read]
    twice = sorted({version for version in versions if versions.count(version) > 1})
    if twice:
        raise MatrixError(f"{where}: more than once: {', '.join(twice)}; one line for each tag")
    return tuple(sorted(read, key=lambda release: (release.numbers, release.version)))


def _release(
    where: str, record: dict[str | None, str | list[str] | None], facts: ReleaseFacts
) -> Release:
    columns = {name: cell for name, cell in record.items() if name and isinstance(cell, str)}
    if len(columns) < len(record):
        raise MatrixError(f"{where}: not as many cells as columns")
    try:
        shown = facts.text_of(columns)
        named = {name: columns[name] for name in COLUMNS}
    except KeyError as error:
        raise MatrixError(f"{where}: no column {error}") from None
    try:
        branch = facts.branch_of(named["version"])
        return Release.model_validate({**named, "branch": branch, "shown": shown})
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        column = "".join(f"{part}: " for part in wrong["loc"])
        raise MatrixError(f"{where}: {column}{wrong['msg']}") from error


SERIES_ID = "releases"


def parents_of(releases: Sequence[Release]) -> dict[str, tuple[str, ...]]:
    """Each tag's parent: the one before it in its branch, or the one its branch forked from.

    A branch forks from the last tag before its own first one, of the nearest older branch
    that had any tag by then.
    """
    parents: dict[str, tuple[str, ...]] = {}
    older: list[list[Release]] = []
    for _, tags in groupby(releases, key=lambda release: release.branch):
        branch = list(tags)
        above: Release | None = _fork(branch[0], older)
        for release in branch:
            parents[release.version] = () if above is None else (above.version,)
            above = release
        older.append(branch)
    return parents


def release_series(releases: Sequence[Release], title: str) -> Series:
    """The releases as one series: a chain for each branch that was not continued."""
    return Series(id=SERIES_ID, title=title, parents=parents_of(releases))


def known_releases() -> tuple[Series, tuple[Release, ...]]:
    """The one product's whose releases the lab has a table of."""
    name, path = next(iter(release_files().items()))
    known = product(name)
    releases = load_releases(path, known.releases)
    shown = f", by {known.releases.title}" if known.releases.title else ""
    return release_series(releases, f"Every tagged release of {known.title}{shown}"), releases


def _fork(first: Release, older: Iterable[list[Release]]) -> Release | None:
    for branch in reversed(list(older)):
        earlier = [release for release in branch if release.date < first.date]
        if earlier:
            return earlier[-1]
    return None
