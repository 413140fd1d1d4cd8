"""What the package drivers share: an order, its patches, and one confined build of it.

source package + patches + toolchain -> a folder with packages and their index, found again by key.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dsbuilds import build_cache
from dsbuilds.build_cache import builds_home, compiler_cache
from dsbuilds.edits.edit import Patch, promise_of
from dsbuilds.failure_reason import UnbuildableError, cause_of
from dsbuilds.sandbox.sandbox import Limits, confined_run, unbuildable, work_folder
from dsbuilds.sandbox.untrusted_files import PLAIN, Entry, content_of, copy_output, plain_file
from dsbuilds.sources.download import recorded
from dsbuilds.sources.source_package import SourcePackage
from dsbuilds.sources.source_tree import Tree, imported
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.content_key import content_key
from dsharness.errors import BuildError
from dsharness.machine.host import available_cpus
from dsharness.model import Build, DriverName, Image, Provenance, Row
from dsharness.progress import Progress
from dsimages.buildah import Workshop
from dsimages.file_lock import exclusive

LIBEXEC = Path(__file__).parents[1] / "libexec"
ARCHIVE = "source.tar"  # next to a build's folder: what its script unpacks, if anything
PACKAGES = "packages"  # the repository, below a build's folder
INDEX_CHARACTERS = 1 << 20
INDEX = "packages.tsv"  # in it: NAME TAB VERSION TAB FILE of each
WHO = "dsbisect <dsbisect@localhost>"
HEADERS = re.compile(r"^(From|Author|Subject|Description|Origin):", re.MULTILINE)
DIFF = re.compile(r"^(--- |diff |Index: )", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class PackageOrder:
    """One source package to build for one row, and how."""

    row: Row
    image: Image  # of the row, as its own packages made it
    source: SourcePackage
    patches: Sequence[Patch] = ()
    clean: bool = False  # without a compiler cache
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, kw_only=True)
class PackageDriver(ABC):
    """One way from a source package to binary packages."""

    name: DriverName
    revision: int  # raised when a build of the same source comes out differently
    script: Path  # run in the toolchain's image, in /build; leaves /build/packages
    flags: tuple[str, ...] = ()  # arguments of the script, in addition to the number of jobs

    @property
    def tool(self) -> str:
        """What builds where that is a program of the host, with its version; else nothing."""
        return ""

    def again(self, script: Path) -> PackageDriver:
        """Return what builds a second time, by a script with other conditions."""
        return replace(self, script=script)

    @abstractmethod
    def toolset(
        self, workshop: Workshop, order: PackageOrder, *, progress: Progress
    ) -> ToolchainImage:
        """Return the row's image and what building this source takes."""

    def source_tree(self, workshop: Workshop, order: PackageOrder, toolset: ToolchainImage) -> Tree:
        """Return the unpacked source with its packager's patches: what an edit is made for."""
        source = order.source

        def unpacked() -> Tree:
            with work_folder() as build:
                output = self.unpack(workshop, order, toolset, build)
                if output is not None:
                    raise UnbuildableError(
                        f"{source.origin} cannot be unpacked: {cause_of(output)}", log=workshop.log
                    )
                return imported(build, source.origin, *self.unpacked_at(build, source.origin))

        return recorded(
            f"{self.name.value}-{source.identity}", source.origin, source.version, unpacked
        )

    @abstractmethod
    def unpack(
        self, workshop: Workshop, order: PackageOrder, toolset: ToolchainImage, build: Path
    ) -> str | None:
        """Leave the source as its packager's tools unpack it; what they said if they failed."""

    @abstractmethod
    def unpacked_at(self, build: Path, origin: str) -> tuple[str, ...]:
        """Return where the server's tree lies among what was unpacked."""

    @abstractmethod
    def lay_out(self, order: PackageOrder, tree: Tree, build: Path) -> None:
        """Write what the script needs, the order's patches included; ARCHIVE is next to it."""

    def make(self, at: Workshop, order: PackageOrder, toolset: ToolchainImage, build: Path) -> None:
        """Leave packages and their index in the folder's PACKAGES, of what was laid out in it."""
        archive = build.with_name(ARCHIVE)
        output = confined_run(
            at,
            toolset.reference,
            self.script,
            str(len(available_cpus())),
            *self.flags,
            build=build,
            source=archive if archive.exists() else None,
            cache=None if order.clean else compiler_cache(toolset.key),
            limits=order.limits,
        )
        if output is not None:
            raise unbuildable(output, at.log)


def order_key(driver: PackageDriver, order: PackageOrder, toolset: ToolchainImage) -> str:
    """Return all that decides what comes out."""
    return content_key(
        [
            driver.name,
            driver.revision,
            driver.script.read_text(encoding="utf-8"),
            order.source.identity,
            [[patch.name, patch.sha256] for patch in order.patches],
            toolset.key,
            driver.flags,
            order.clean,
            *filter(None, [driver.tool]),
        ]
    )


def build_packages(
    driver: PackageDriver, workshop: Workshop, order: PackageOrder, *, progress: Progress
) -> Build:
    """The order's build: found, or made now; EditError or BuildError says why it cannot be."""
    toolset = driver.toolset(workshop, order, progress=progress)

    def make(target: Path) -> Provenance:
        source = driver.source_tree(workshop, order, toolset)
        patched = source
        for patch in order.patches:
            patched = patched.patched(patch.name, patch.text)
        started = time.monotonic()
        with work_folder() as work:
            build = work / "build"
            build.mkdir()
            progress(f"building {order.source.name} {order.source.version}")
            driver.lay_out(order, source, build)
            driver.make(workshop, order, toolset, build)
            copy_output(build, PACKAGES, target=target, keep=package_or_index)
        if not index_of(target):
            raise UnbuildableError("unbuildable: it made no package", log=workshop.log)
        return provenance_of(
            order,
            driver.name,
            tree=patched.id,
            toolchain=driver.tool or toolset.reference,
            tools={} if driver.tool else toolset.tools,
            flags=driver.flags,
            seconds=time.monotonic() - started,
            log=workshop.log,
        )

    return packages_build(workshop, order, order_key(driver, order, toolset), make)


def packages_build(
    workshop: Workshop, order: PackageOrder, key: str, make: Callable[[Path], Provenance]
) -> Build:
    """Return the build of that key; ``make`` is given where its packages are to lie."""

    def built(_: None, folder: Path) -> Build:
        repository = folder / PACKAGES
        provenance = make(repository)
        return Build(
            key=key,
            folder=str(folder),
            content=content_of(repository),
            packages=tuple(file for _, _, file in index_of(repository)),
            promise=promise_of(order.patches),
            provenance=provenance,
        )

    guard = exclusive(builds_home() / f"{key}.lock", workshop.deadline)
    return build_cache.found_or_made(key, guard, built, workshop.engine)


def provenance_of(
    order: PackageOrder,
    driver: DriverName,
    *,
    tree: str,
    toolchain: str,
    tools: dict[str, str],
    flags: tuple[str, ...],
    seconds: float,
    log: Path,
) -> Provenance:
    """Return what is to be known of a build that has just been made."""
    return Provenance(
        driver=driver,
        source=order.source.origin,
        revision=order.source.version,
        tree=tree,
        patches=tuple(patch.applied for patch in order.patches),
        toolchain=toolchain,
        tools=tools,
        flags=flags,
        clean=order.clean,
        seconds=round(seconds, 1),
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        log=str(log),
    )


def repository_of(build: Build) -> Path:
    """Return where its packages and their index are."""
    return Path(build.folder) / PACKAGES


def index_of(folder: Path) -> list[tuple[str, str, str]]:
    """Name, version and file of every package in a repository that a build left.

    The build wrote it: BuildError for anything but names, since an installer gets these words.
    """
    try:
        with (folder / INDEX).open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(INDEX_CHARACTERS)
    except OSError:
        return []
    rows = [tuple(line.split("\t")) for line in text.splitlines()]
    packages = [(row[0], row[1], row[2]) for row in rows if len(row) == 3]
    for row in packages:
        if not all(PLAIN.fullmatch(word) for word in row):
            raise BuildError(f"{INDEX} names something that is not a package: {' '.join(row)}")
    return packages


def package_or_index(entry: Entry) -> bool:
    """What a repository consists of: packages, their index, and a folder that describes them."""
    return plain_file(entry, below=("", "repodata"))


def headed(title: str, text: str) -> str:
    """The patch with a header that quilt (DEP-3) and git am both read; one that it has stays."""
    diff = DIFF.search(text)
    if HEADERS.search(text[: diff.start()] if diff else text):
        return text
    return f"From: {WHO}\nSubject: {one_line(title)}\nForwarded: not-needed\n\n---\n{text}"


def one_line(text: str) -> str:
    """Return a title as an entry or a header takes it."""
    return " ".join(text.split())
