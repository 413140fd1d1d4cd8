"""Every tagged release of a product, as a series of branches.

releases.csv says what each tag ships; the branches are read off the versions and dates, since
upstream's branches run in parallel and take the same backports.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic

from dsharness.errors import MatrixError
from dsharness.model import Series, Value
from dsharness.products import product, release_files

Tag = Annotated[str, pydantic.Field(pattern=r"^\d+\.\d+[0-9.-]*$", max_length=64)]
SERIES_ID = "releases"


class Release(Value):
    """One tag: what it is, and how it stores a password by default."""

    version: Tag
    date: date
    commit: str
    default_scheme: str
    scheme_without_rust: str = ""
    rust_rounds: pydantic.PositiveInt | None = None
    rust_mandatory: Literal["yes", "no"]
    fedora: str = ""
    nvr: str = ""

    @pydantic.model_validator(mode="after")
    def _rounds_of_rust(self) -> Self:
        if self.rust and self.rust_rounds is None:
            raise ValueError(f"rust_rounds: {self.default_scheme} needs a number")
        return self

    @property
    def rust(self) -> bool:
        """PBKDF2-SHA512 is Rust's; the C scheme is spelled PBKDF2_SHA256."""
        return self.default_scheme.startswith("PBKDF2-")

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", self.version))

    @property
    def branch(self) -> str:
        """`2.0` of 2.0.17; under 1.x a branch has three numbers: `1.4.3` of 1.4.3.35."""
        length = 3 if self.numbers[0] == 1 else 2
        return ".".join(str(number) for number in self.numbers[:length])

    @property
    def default(self) -> str:
        """The scheme, and for the Rust ones how often it is applied."""
        rounds = f", {self.rust_rounds:,} rounds" if self.rust else ""
        return f"{self.default_scheme}{rounds}"


def load_releases(where: Path) -> tuple[Release, ...]:
    """Every release of the table, by version; MatrixError with the line that is wrong."""
    try:
        with where.open(encoding="utf-8", newline="") as stream:
            table = csv.DictReader(stream)
            read = [_release(where, table.line_num, record) for record in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MatrixError(f"{where}: cannot be read: {error}") from error
    if not read:
        raise MatrixError(f"{where}: no release; a line for each tag is needed")
    versions = [release.version for release in read]
    twice = sorted({version for version in versions if versions.count(version) > 1})
    if twice:
        raise MatrixError(f"{where}: more than once: {', '.join(twice)}; one line for each tag")
    return tuple(sorted(read, key=lambda release: (release.numbers, release.version)))


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
    releases = load_releases(path)
    return release_series(releases, f"Every tagged release of {product(name).title}"), releases


def _fork(first: Release, older: Iterable[list[Release]]) -> Release | None:
    for branch in reversed(list(older)):
        earlier = [release for release in branch if release.date < first.date]
        if earlier:
            return earlier[-1]
    return None


def _release(where: Path, line: int, record: dict[str, str | None]) -> Release:
    try:
        return Release.model_validate({key: value for key, value in record.items() if value})
    except pydantic.ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        column = "".join(f"{part}: " for part in wrong["loc"])
        raise MatrixError(f"{where}:{line}: {column}{wrong['msg']}") from error
