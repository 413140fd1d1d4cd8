"""A user's build request: how a source is named, and what can be refused at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from dsbuilds.edits.known_edits import parse
from dsbuilds.edits.patch_file import user_patch
from dsbuilds.history.repository import origin_of
from dsbuilds.sources.download import here
from dsbuilds.sources.source_package import location_of
from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import find_matrix
from dsharness.model import (
    BuildSpec,
    DistributionSource,
    DriverName,
    GitSource,
    Matrix,
    Row,
    RpmBuilder,
    SourceSpec,
    SrpmSource,
    TarballSource,
)
from dsharness.products import product, product_ids

ARCHIVE = re.compile(r"\.(tar(\.\w+)?|tgz|tbz2|txz)$")
NVR = re.compile(r"(?P<name>[^/@]+)-[^-/@]+-[^-/@]+")
# Up to here no @ can mean a revision: scheme://user@host, or git's short form user@host:
HOST = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*|(?:[^/@:\s]+@)?[^/@:\s]+:", re.IGNORECASE)
# A source package is taken by every driver.
TAKERS = {"git": (DriverName.TREE, DriverName.RPM), "tarball": (DriverName.TREE,)}


def check_changes(edits: Iterable[str], patches: Iterable[Path]) -> None:
    """Refuse an unknown edit, a value that no source can have, a file that is not a patch.

    Whether they fit a source is found out when there is the source.
    """
    for edit in edits:
        parse(edit)
    for patch in patches:
        user_patch(patch)


def check_rows(matrix: Matrix, rows: Iterable[Row]) -> None:
    """Refuse rows that are to be built of what cannot be; it is the matrix that names it."""
    for row in rows:
        if row.build is not None:
            try:
                check_build(row.build, row.id, folder=patch_folder(matrix))
            except UsageError as error:
                raise MatrixError(f"{row.id}: {error.message}", hint=error.hint) from error


def patch_folder(matrix: Matrix) -> Path:
    """Return the folder that a matrix names its patches from."""
    return (matrix.file or find_matrix()).parent


def check_build(spec: BuildSpec, row: str, *, folder: Path) -> None:
    """Refuse what can never be built; ``folder`` is the folder of its patches."""
    check_changes(spec.edits, (folder / name for name in spec.patches))
    _check_driver(spec, row)
    match spec.source:
        case DistributionSource():
            pass
        case GitSource(url=url):
            origin_of(url)
        case SrpmSource(location=location):
            here(location_of(location))
        case TarballSource(location=location):
            here(location)


def _check_driver(spec: BuildSpec, row: str) -> None:
    """Refuse a driver that does not take such a source."""
    if spec.builder is RpmBuilder.MOCK and spec.driver is not DriverName.RPM:
        raise MatrixError(
            f"{row}: mock builds RPMs, and the driver is {spec.driver}",
            hint="--driver rpm, for a row of Fedora or Enterprise Linux; or leave out mock",
        )
    source = spec.source
    original = isinstance(source, DistributionSource) and source.original
    kind = "tarball" if original else source.kind
    takers = TAKERS.get(kind)
    if takers is not None and spec.driver not in takers:
        raise MatrixError(
            f"{row}: the {spec.driver} driver builds source packages, not a {kind}",
            hint="source: {kind: distribution} or srpm; a repository: driver tree or rpm",
        )


def source_named(text: str | None) -> SourceSpec:
    """An SRPM, an archive, a repository with a revision; nothing is the distribution's own."""
    if text is None:
        return DistributionSource()
    if text.endswith(".src.rpm") or _is_build(text):
        return SrpmSource(location=_whole(text))
    if ARCHIVE.search(text):
        return TarballSource(location=_whole(text))
    url, revision = _apart(text)
    return GitSource(url=_whole(url), revision=revision)


def _is_build(text: str) -> bool:
    """Return whether it names a build of a product's source package, as Koji does."""
    match = NVR.fullmatch(text)
    packages = [product(name).rpm for name in product_ids()]
    return match is not None and match["name"] in {
        package.source for package in packages if package
    }


def _apart(text: str) -> tuple[str, str]:
    """Return a repository and its revision; a folder may have an @ in its name."""
    host = HOST.match(text)
    begin = host.end() if host else 0
    path, separator, revision = text[begin:].rpartition("@")
    if not separator or not path or not revision or (host is None and Path(text).exists()):
        return text, "HEAD"
    return text[:begin] + path, revision


def _whole(location: str) -> str:
    """Return the full path of what is here; podman reads a relative one as the name of a volume."""
    path = Path(location).expanduser()
    exists_here = HOST.match(location) is None and path.exists()
    return str(path.absolute()) if exists_here else location
