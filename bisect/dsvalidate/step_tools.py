"""What every step of a validation works with: tools, a folder for what it saw, and both sides.

A side is a row with its stock packages, or with those that are to take their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dsbuilds.built_row import LIMIT_S, BuiltRowMaker
from dsbuilds.drivers.package_build import repository_of
from dsbuilds.drivers.package_image import installed
from dsbuilds.toolchains.toolchain_image import ToolchainImage, check_tools
from dsharness.containers.engine import Engine
from dsharness.content_key import file_sha256
from dsharness.model import Build, Family, Image, Matrix, Row
from dsharness.paths import logs_home
from dsharness.process.command import atomic_write
from dsharness.process.deadline import Deadline
from dsharness.progress import Progress
from dsimages.buildah import Workshop
from dsimages.image_set import build_image
from dsvalidate.package_files import PackageTools, given_build


@dataclass(kw_only=True)
class StepTools:
    """An engine, the image of programs that look at packages and servers, and a log."""

    engine: Engine
    matrix: Matrix
    family: Family  # of the packages
    name: str  # of the logs
    progress: Progress

    @property
    def at(self) -> Workshop:
        """The workshop of a step that runs tools; its log is evidence too."""
        log = logs_home() / "validate" / f"{self.name}.log"
        return Workshop(engine=self.engine, deadline=Deadline.after(LIMIT_S), log=log)

    @cached_property
    def image(self) -> ToolchainImage:
        """Lintian, abidiff, ldap3 and more, made when a step first needs them."""
        return check_tools(self.engine, self.matrix, progress=self.progress)

    @property
    def packages(self) -> PackageTools:
        """The programs of that image that read packages."""
        return PackageTools(at=self.at, image=self.image.reference, family=self.family)


@dataclass(frozen=True, kw_only=True)
class EvidenceFolder:
    """The folder of these packages; others of the same names have their own."""

    folder: Path

    def keep(self, name: str, text: str) -> str:
        """Write a text, and return its name in the report."""
        atomic_write(self.folder / name, text)
        return f"evidence/{name}"


@dataclass(frozen=True, kw_only=True)
class Sides:
    """Both images are made, and the packages are what they were when they were made."""

    row: Row  # as it is
    patched_row: Row  # with its BuildSpec; of given packages: as ``row``, with an id of its own
    stock: Image  # with the distribution's own packages
    patched: Image  # the same with the patched ones installed over its own
    build: Build  # the patched packages
    given: bool  # they were not built here
    package_hashes: tuple[tuple[str, str], ...]  # name and SHA-256 of each

    @property
    def files(self) -> list[Path]:
        """The patched packages."""
        return [repository_of(self.build) / name for name in self.build.packages]


def stock_image(row: Row, tools: StepTools) -> Image:
    return build_image(tools.engine, tools.matrix, row, on_progress=tools.progress)


def made_sides(
    row: Row, patched_row: Row, stock: Image, tools: StepTools, packages: Sequence[Path] = ()
) -> Sides:
    """Build the packages, or take those that are given, and install them."""
    if packages:
        build = given_build(tools.at, tools.image, tuple(packages), row)
        patched = installed(tools.at, stock, build, patched_row, progress=tools.progress)
    else:
        build, patched = maker_of(patched_row, stock, tools).make()
    repository = repository_of(build)
    hashes = tuple((name, file_sha256(repository / name)) for name in build.packages)
    return Sides(
        row=row, patched_row=patched_row, stock=stock, patched=patched, build=build,
        given=bool(packages), package_hashes=hashes,
    )  # fmt: skip


def maker_of(patched_row: Row, stock: Image, tools: StepTools) -> BuiltRowMaker:
    """Return what builds the packages of a row that says how; one of given packages does not."""
    spec = patched_row.build
    assert spec is not None  # noqa: S101 - the request says --package or what to build
    return BuiltRowMaker(
        engine=tools.engine, matrix=tools.matrix, row=patched_row, spec=spec, base=stock,
        progress=tools.progress,
    )  # fmt: skip
