"""The tagged releases of a product, as a series of branches.

The branches are read off the versions and dates, since upstream's branches run in parallel and take
the same backports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from dsharness.model import Series
from dsharness.products import product, release_files
from dsharness.products.release_table import Release, load_releases

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
