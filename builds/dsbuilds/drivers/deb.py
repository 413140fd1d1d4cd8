"""Debian packages: dpkg-buildpackage of the distribution's source with further quilt patches.

What it writes of Debian's changelog and patch series follows from theirs, by pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from debian.changelog import Changelog, ChangelogParseError
from debian.deb822 import Deb822

from dsbuilds.drivers.package_build import (
    ARCHIVE,
    LIBEXEC,
    WHO,
    PackageDriver,
    PackageOrder,
    headed,
    one_line,
)
from dsbuilds.drivers.package_image import dependencies_shop
from dsbuilds.sandbox.sandbox import confined_run
from dsbuilds.sources.source_archive import archived
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.errors import SourceError
from dsharness.model import DriverName
from dsharness.progress import Progress
from dsimages.buildah import Workshop

BUILD_FIELDS = (
    "Build-Depends",
    "Build-Depends-Arch",
    "Build-Depends-Indep",
    "Build-Conflicts",
    "Build-Conflicts-Arch",
    "Build-Conflicts-Indep",
)
INSTALL = LIBEXEC / "install-build-depends-apt"
UNPACK = LIBEXEC / "unpack-deb"
CHANGELOG = "debian/changelog"
SERIES = "debian/patches/series"


@dataclass(frozen=True, kw_only=True)
class DebDriver(PackageDriver):
    """dpkg-buildpackage in the row's image with the source's build dependencies."""

    name: DriverName = DriverName.DEB
    revision: int = 1
    script: Path = LIBEXEC / "build-deb"

    def toolset(
        self, workshop: Workshop, order: PackageOrder, *, progress: Progress
    ) -> ToolchainImage:
        """The row's image and the source's Build-Depends; sources that need the same share it."""
        files = {"needs.dsc": build_needs(order.source.control_text)}
        return dependencies_shop(workshop, order, INSTALL, "needs.dsc", files, progress=progress)

    def unpack(
        self, workshop: Workshop, order: PackageOrder, toolset: ToolchainImage, build: Path
    ) -> str | None:
        """Return the tree as `dpkg-source -x` leaves it."""
        return confined_run(
            workshop,
            toolset.reference,
            UNPACK,
            order.source.control,
            build=build,
            volumes=((order.source.folder, "/source", "ro"),),
            limits=order.limits,
        )

    def unpacked_at(self, build: Path, origin: str) -> tuple[str, ...]:
        """Return the folder that the script makes."""
        del build, origin
        return ("unpacked",)

    def lay_out(self, order: PackageOrder, tree: Tree, build: Path) -> None:
        """Archive the tree with an entry in the changelog and the patches at the series' end."""
        archived(with_patches_added(order, tree), build.with_name(ARCHIVE))


def with_patches_added(order: PackageOrder, tree: Tree) -> Tree:
    """Return the source package that is built: dpkg-source itself applies what the series adds."""
    changelog = tree.read(CHANGELOG)
    if changelog is None:
        raise SourceError(
            f"{tree.origin} holds no {CHANGELOG}", hint="the deb driver builds Debian's sources"
        )
    changes = [patch.applied.line for patch in order.patches]
    files = {CHANGELOG: with_entry(changelog, changes)}
    if (tree.read("debian/source/format") or "1.0").strip() != "3.0 (quilt)":
        for patch in order.patches:
            tree = tree.patched(patch.name, patch.text)
        return tree.with_files(files)
    if order.patches:
        files[SERIES] = with_patches(tree.read(SERIES) or "", [p.name for p in order.patches])
    for patch in order.patches:
        files[f"debian/patches/{patch.name}"] = headed(patch.title, patch.text)
    return tree.with_files(files)


def build_needs(control: str) -> str:
    """Return a source's control file with nothing in it but what building takes."""
    fields = Deb822(control)
    build_fields = {name: " ".join(fields[name].split()) for name in BUILD_FIELDS if name in fields}
    empty = {"Format": "1.0", "Source": "dsbisect-needs", "Version": "0", "Architecture": "any"}
    return str(Deb822({**empty, **build_fields}).dump())


OURS = re.compile(r"\+dsbisect(?P<count>\d+)$")


def suffixed(version: str) -> str:
    """A version that sorts right after the archive's, its rebuilds and its stable updates."""
    ours = OURS.search(version)
    if ours is None:
        return f"{version}+dsbisect1"
    return f"{version[: ours.start()]}+dsbisect{int(ours['count']) + 1}"


def with_entry(changelog: str, changes: Sequence[str]) -> str:
    """The changelog with an entry on top; its date is the last one's, so that builds repeat."""
    try:
        last = Changelog(changelog, max_blocks=1, strict=True)[0]
    except ChangelogParseError as error:
        raise SourceError(
            f"debian/changelog has no entry that can be read: {error}",
            hint="`dpkg-parsechangelog` in the unpacked source says what is wrong with it",
        ) from error
    lines = [f"  * {one_line(change)}" for change in changes or ("Rebuilt as it is.",)]
    ours = Changelog()
    ours.new_block(
        package=last.package,
        version=suffixed(str(last.version)),
        distributions=last.distributions,
        urgency="medium",
        changes=["", *lines, ""],
        author=WHO,
        date=last.date,
    )
    return f"{ours}\n{changelog}"


def with_patches(series: str, names: Sequence[str]) -> str:
    """Return the quilt series with further patches, as the last ones."""
    known_names = {line.split()[0] for line in series.splitlines() if line.split("#")[0].strip()}
    clashing = [name for name in names if name in known_names]
    if clashing:
        raise SourceError(
            f"debian/patches/series has a {clashing[0]} already",
            hint="call the patch something else",
        )
    end = "" if not series or series.endswith("\n") else "\n"
    return series + end + "".join(f"{name}\n" for name in names)
