"""Which versions a row asks for, and whether a manifest answers."""

from __future__ import annotations

from collections.abc import Mapping

from dsharness.errors import PackageError
from dsharness.model import KojiPackages, Row
from dsharness.package_version import answers
from dsharness.products.catalog import (
    installs,
    known_of,
    koji_rpms,
    packages_of,
    stated_versions,
)


def wanted(row: Row) -> dict[str, str]:
    """Package -> the version that the row promises."""
    named = installs(row)
    server = packages_of(row).server
    versions = {
        name: version
        for names, version in stated_versions(row).values()
        for name in names
        if name == server or name in named
    }
    if isinstance(row.packages, KojiPackages):
        build = row.packages.nvr.rsplit("-", 2)
        versions |= dict.fromkeys(koji_rpms(row, row.packages), f"{build[1]}-{build[2]}")
    return versions | row.pins


def lockable(row: Row) -> tuple[str, ...]:
    """The packages whose exact versions belong in the lock."""
    suites = (name for suite in known_of(row).suites.values() for name in suite.packages)
    names = [*packages_of(row).all, *suites, *installs(row), *wanted(row)]
    return (*dict.fromkeys(names),)


def check_manifest(row: Row, packages: Mapping[str, str]) -> None:
    """Refuse an image that does not contain what its row promises; every row has a server."""
    for name, wish in ({packages_of(row).server: ""} | wanted(row)).items():
        _check(row, name, wish, packages.get(name))
    for names, version in stated_versions(row).values():
        name = next((name for name in names if name in packages), names[0])
        _check(row, name, version, packages.get(name))


def _check(row: Row, name: str, wish: str, found: str | None) -> None:
    if found is None:
        raise PackageError(
            f"{row.id}: {name} {wish or '(any version)'} was requested, but the image has "
            f"no {name}",
            hint=f"add {name} to the row's packages.install, or correct the pin",
        )
    if wish and not answers(found, wish):
        raise PackageError(
            f"{row.id}: {name} {wish} was requested, but the image has {found}",
            hint="correct the row's versions, or take its packages from where they are",
        )
