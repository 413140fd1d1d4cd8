"""Packages that a user gives (--package) as a build of the lab."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

from dsbuilds import build_cache
from dsbuilds.build_cache import builds_home
from dsbuilds.drivers.package_build import PACKAGES, index_of
from dsbuilds.sandbox.build_output import PLAIN, content_of
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.content_key import content_key, file_sha256
from dsharness.errors import PackageError, UsageError
from dsharness.guarded_files import regular_file
from dsharness.model import Build, DriverName, Provenance, Row
from dsharness.process.command import writing
from dsharness.products.catalog import packages_of
from dsimages.buildah import Workshop
from dsimages.file_lock import exclusive
from dsvalidate.tool_output import SCRIPT, add_index, kind_of

FIRST_BYTES = {".deb": b"!<arch>\n", ".rpm": b"\xed\xab\xee\xdb"}


def given_build(at: Workshop, tools: ToolchainImage, packages: tuple[Path, ...], row: Row) -> Build:
    """A repository of them with its index; UsageError for what is none of the family's packages."""
    check_given(packages, row)
    digests = {path.name: file_sha256(path) for path in packages}
    key = content_key(["given", digests, tools.key, SCRIPT.read_text(encoding="utf-8")])

    def make(_: None, folder: Path) -> Build:
        repository = folder / PACKAGES
        with writing(repository):
            repository.mkdir()
            for path in packages:
                shutil.copyfile(path, repository / path.name)
        try:
            add_index(at, tools.reference, repository, row.family)
        except PackageError as error:
            raise UsageError(f"--package: {error.message}", hint=error.hint, log=at.log) from error
        _check_names(repository, row)
        return Build(
            key=key,
            folder=str(folder),
            content=content_of(repository),
            packages=tuple(file for _, _, file in index_of(repository)),
            provenance=Provenance(
                driver=DriverName(kind_of(row.family)),
                source=f"packages that were given: {', '.join(digests)}",
                tree=content_key(digests),
                toolchain=tools.reference,
                clean=True,
                seconds=0.0,
                built_at=datetime.now(UTC).isoformat(timespec="seconds"),
                log=str(at.log),
            ),
        )

    guard = exclusive(builds_home() / f"{key}.lock", at.deadline)
    return build_cache.found_or_made(key, guard, make)


def check_given(packages: tuple[Path, ...], row: Row) -> None:
    """Refuse, by a UsageError, a file that is no package of the row's family; nothing is run."""
    suffix = f".{kind_of(row.family)}"
    for path in packages:
        try:
            with regular_file(path) as stream:
                first = stream.read(8)
        except OSError as error:
            raise UsageError(
                f"--package {path}: {error.strerror}", hint="name a file that can be read"
            ) from error
        if path.suffix != suffix or not first.startswith(FIRST_BYTES[suffix]):
            raise UsageError(
                f"--package {path}: not a {suffix} package, as {row.id} installs them",
                hint="`dsbisect matrix show` lists rows and their systems: another --row may fit",
            )
        if PLAIN.fullmatch(path.name) is None:
            raise UsageError(
                f"--package {path}: its name has characters that no package's name has",
                hint="name it as the build did: NAME_VERSION_ARCH.deb or NAME-VERSION.ARCH.rpm",
            )
    names = [path.name for path in packages]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--package {twice}: given twice", hint="give each package once")


def _check_names(repository: Path, row: Row) -> None:
    """Refuse packages without the server, or one in two versions."""
    names = [name for name, _, _ in index_of(repository)]
    server = packages_of(row).server
    if server not in names:
        raise UsageError(
            f"--package: {server} is not among {', '.join(names)}",
            hint="give every package that the build made: the server's and its libraries'",
        )
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--package: {twice} in two versions", hint="give one of them")
