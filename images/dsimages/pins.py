"""Which versions a row asks for, and whether a manifest answers."""

from __future__ import annotations

from collections.abc import Mapping

from dsharness.errors import PackageError
from dsharness.model import KojiPackages, Row
from dsharness.package_version import answers

DIRSRV = "389-ds-base"
FREEIPA = ("freeipa-server", "ipa-server")  # Fedora's name and EL's
# Made from one source with the server; a server of one version needs the lib389 of that version.
SIBLINGS = ("389-ds-base-libs", "python3-lib389")


def wanted(row: Row) -> dict[str, str]:
    """Package -> the version that the row promises."""
    versions = {} if row.versions.dirsrv is None else {DIRSRV: row.versions.dirsrv}
    if row.versions.freeipa is not None:
        versions |= {name: row.versions.freeipa for name in FREEIPA if name in row.packages.install}
    if isinstance(row.packages, KojiPackages):
        build = row.packages.nvr.rsplit("-", 2)
        versions |= dict.fromkeys(row.packages.rpms, f"{build[1]}-{build[2]}")
    return versions | row.pins


def lockable(row: Row) -> tuple[str, ...]:
    """The packages whose exact versions belong in the lock."""
    return (*dict.fromkeys([DIRSRV, *SIBLINGS, *FREEIPA, *row.packages.install, *wanted(row)]),)


def check_manifest(row: Row, packages: Mapping[str, str]) -> None:
    """Refuse an image that does not hold what its row promises; every row has a directory."""
    for name, wish in ({DIRSRV: ""} | wanted(row)).items():
        _check(row, name, wish, packages.get(name))
    if row.versions.freeipa is not None:
        name = next((name for name in FREEIPA if name in packages), FREEIPA[0])
        _check(row, name, row.versions.freeipa, packages.get(name))


def _check(row: Row, name: str, wish: str, found: str | None) -> None:
    if found is None:
        raise PackageError(
            f"{row.id}: {name} {wish or '(any version)'} was wanted, but the image holds no {name}",
            hint=f"add {name} to the row's packages.install, or correct the pin",
        )
    if wish and not answers(found, wish):
        raise PackageError(
            f"{row.id}: {name} {wish} was wanted, but the image holds {found}",
            hint="correct the row's versions, or take its packages from where they are",
        )
