"""matrix.lock: what is known of a row only after its first pull.

A row's pins say which versions it asks for; an image's manifest has to answer them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from dsharness.content_key import content_key
from dsharness.errors import MatrixError, PackageError
from dsharness.matrix.loader import PACKAGED
from dsharness.model import KojiPackages, Row, Value
from dsharness.model.value import ImageDigest, PackageName, PackageVersion
from dsharness.package_version import answers
from dsharness.paths import config_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsharness.products.catalog import installs, known_of, koji_rpms, packages_of, stated_versions
from dsimages.file_lock import exclusive


def wanted(row: Row) -> dict[str, str]:
    """Map packages to the versions that the row promises."""
    installed = installs(row)
    server = packages_of(row).server
    versions = {
        name: version
        for names, version in stated_versions(row).values()
        for name in names
        if name == server or name in installed
    }
    if isinstance(row.packages, KojiPackages):
        build = row.packages.nvr.rsplit("-", 2)
        versions |= dict.fromkeys(koji_rpms(row, row.packages), f"{build[1]}-{build[2]}")
    return versions | row.pins


def lockable(row: Row) -> tuple[str, ...]:
    """Return the packages whose exact versions belong in the lock."""
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


def _check(row: Row, name: str, wish: str, version: str | None) -> None:
    if version is None:
        raise PackageError(
            f"{row.id}: {name} {wish or '(any version)'} was requested, but the image has "
            f"no {name}",
            hint=f"add {name} to the row's packages.install, or correct the pin",
        )
    if wish and not answers(version, wish):
        raise PackageError(
            f"{row.id}: {name} {wish} was requested, but the image has {version}",
            hint="correct the row's versions, or take its packages from where they are",
        )


WAIT_LIMIT_S = 30.0


class Locked(Value):
    """One row at the time its image was first made."""

    row: str = Field(description="key of the row's definition; another definition is unlocked")
    digest: ImageDigest | None = Field(default=None, description="of the registry's image")
    packages: dict[PackageName, PackageVersion] = Field(
        description="exact versions of the pinned packages"
    )
    manifest: str = Field(description="key of all installed packages and their versions")


class LockFile(Value):
    version: Literal[1] = 1
    rows: dict[str, Locked] = Field(default_factory=dict)


def definition_key(row: Row) -> str:
    """Return a key that changes with all of a row that decides what its image holds."""
    return content_key(
        row.model_dump(
            mode="json",
            include={"family", "base", "packages", "versions", "pins"},
            exclude_defaults=True,  # a key that the model learns later moves no lock
        )
    )


@dataclass(frozen=True, kw_only=True)
class MatrixLock:
    """The lock file of one matrix; safe to share between threads and processes."""

    path: Path

    @classmethod
    def of_matrix(cls, matrix_file: Path) -> MatrixLock:
        """Return the lock in the matrix's folder, or in the lab's own if that cannot be written.

        The program's own folder is the package manager's, even where it can be written.
        """
        path = matrix_file.with_suffix(".lock")
        if matrix_file != PACKAGED and os.access(path if path.exists() else path.parent, os.W_OK):
            return cls(path=path)
        name = f"{matrix_file.stem}-{content_key(str(matrix_file.resolve()))}.lock"
        return cls(path=config_home() / name)

    @property
    def text(self) -> str:
        """The whole file; empty where there is none."""
        return self.path.read_text(encoding="utf-8") if self.path.exists() else ""

    def read(self, row: Row) -> Locked | None:
        """What is locked for the row's present definition."""
        found = self._read().rows.get(row.id)
        return found if found is not None and found.row == definition_key(row) else None

    def write(self, row: Row, locked: Locked) -> None:
        """Replace one row's entry and keep the others'."""
        self._replace({row.id: locked})

    def follow(self, text: str) -> None:
        """Replace the entries that another lock has, too, and keep the others."""
        if text and text != self.text:
            self._replace(self._read(text).rows)

    def _replace(self, entries: Mapping[str, Locked]) -> None:
        guard = self.path.with_name(f".{self.path.name}.guard")
        with exclusive(guard, Deadline.after(WAIT_LIMIT_S)):
            before = self._read().rows
            rows = {**before, **entries}
            if rows == before:
                return
            content = LockFile(rows=dict(sorted(rows.items()))).model_dump(mode="json")
            atomic_write(self.path, json.dumps(content, indent=2, sort_keys=True) + "\n")

    def _read(self, text: str | None = None) -> LockFile:
        """What the file says, or that text."""
        try:
            if text is None:
                text = self.path.read_text(encoding="utf-8")
            return LockFile.model_validate_json(text)
        except FileNotFoundError:
            return LockFile()
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            reason = str(error).splitlines()[0]
            raise MatrixError(
                f"{self.path}: cannot be read as a lock: {reason}",
                hint="fix it, or remove it: the next build writes it again",
            ) from error
