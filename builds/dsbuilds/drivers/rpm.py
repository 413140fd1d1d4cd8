"""RPM packages: rpmbuild of a source RPM with further patches, in a container of the row."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.drivers.debian_files import headed
from dsbuilds.drivers.package_build import LIBEXEC, PackageOrder, Progress
from dsbuilds.drivers.package_toolchain import dependencies_shop
from dsbuilds.drivers.spec_file import with_changelog, with_patches, with_release
from dsbuilds.failure_reason import UnbuildableError, cause_of
from dsbuilds.sandbox.build_output import copy_output, plain_file
from dsbuilds.sandbox.script import confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import entries
from dsbuilds.sources.download import recorded
from dsbuilds.sources.source_tree import Tree, imported
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.errors import SourceError
from dsharness.model import DriverName
from dsharness.process.command import writing
from dsharness.products import product_of_source, why_no_source
from dsimages.buildah import Workshop

TOOLS = LIBEXEC / "install-rpm-tools"
REQUIRES = LIBEXEC / "list-build-requires"
INSTALL = LIBEXEC / "install-build-depends-dnf"
REQUIRES_CHARACTERS = 1 << 20
# A name, a path, a capability with a version, or several in brackets; nothing that rpm evaluates.
REQUIREMENT = re.compile(r"[(/A-Za-z0-9_][A-Za-z0-9_ ()./:+~^<>=,@-]{0,400}")
NEEDS = "Name: needs\nVersion: 0\nRelease: 0\nSummary: -\nLicense: -\n"
PREPARE = LIBEXEC / "prepare-rpm"


@dataclass(frozen=True, kw_only=True)
class RpmDriver:
    """rpmbuild in the row's image with the spec's build dependencies."""

    name: DriverName = DriverName.RPM
    revision: int = 2
    script: Path = LIBEXEC / "build-rpm"
    flags: tuple[str, ...] = ()  # of rpmbuild, e.g. --without bundle_jemalloc

    def toolset(self, at: Workshop, order: PackageOrder, *, progress: Progress) -> ToolchainImage:
        """The row's image and the spec's BuildRequires.

        Who reads a spec runs it: its macros are evaluated without a network, and what they come to
        is installed.
        """
        tools = dependencies_shop(at, order, TOOLS, "", {}, progress=progress)
        files = {"needs.spec": needs_spec(self._requires(at, order, tools))}
        return dependencies_shop(
            at, order, INSTALL, "needs.spec", files, base=tools, progress=progress
        )

    def _requires(self, at: Workshop, order: PackageOrder, tools: ToolchainImage) -> str:
        with work_folder() as work:
            build = work / "build"
            build.mkdir()
            _copied(order, order.source.control_text, build)
            output = confined_run(
                at, tools.reference, REQUIRES, order.source.control, *defines(self.flags),
                build=build, limits=order.limits,
            )  # fmt: skip
            if output is not None:
                raise UnbuildableError(
                    f"the spec of {order.source.origin} cannot be read: {cause_of(output)}",
                    log=at.log,
                )
            copy_output(build, "needs", target=work / "needs", keep=plain_file)
            with (work / "needs" / "requires").open(encoding="utf-8", errors="replace") as stream:
                return stream.read(REQUIRES_CHARACTERS)

    def source_tree(self, at: Workshop, order: PackageOrder, toolset: ToolchainImage) -> Tree:
        """The tree as `rpmbuild -bp` leaves it."""
        source = order.source

        def prepared() -> Tree:
            with work_folder() as build:
                _copied(order, source.control_text, build)
                output = confined_run(
                    at, toolset.reference, PREPARE, source.control, *self.flags,
                    build=build, limits=order.limits,
                )  # fmt: skip
                if output is not None:
                    raise UnbuildableError(
                        f"{source.origin} cannot be unpacked: {cause_of(output)}", log=at.log
                    )
                return imported(build, source.origin, *_unpacked(build, source.origin))

        return recorded(f"rpm-{source.identity}", source.origin, source.version, prepared)

    def by(self, script: Path) -> RpmDriver:
        """The same, with another script."""
        return replace(self, script=script)

    def lay_out(self, order: PackageOrder, tree: Tree, build: Path) -> None:
        """SPECS and SOURCES; %prep unpacks and patches by itself."""
        del tree
        lay_out_sources(order, build)


def lay_out_sources(order: PackageOrder, build: Path) -> Path:
    """The packager's files, the patches among them, and the spec that names them: its path."""
    names = [patch.name for patch in order.patches]
    spec = with_release(with_patches(order.source.control_text, names))
    spec = with_changelog(spec, [patch.applied.line for patch in order.patches])
    path = _copied(order, spec, build)
    for patch in order.patches:
        target = build / "SOURCES" / patch.name
        if target.exists():
            raise SourceError(
                f"{order.source.origin} has a {patch.name} already",
                hint="call the patch something else",
            )
        target.write_text(headed(patch.title, patch.text), encoding="utf-8")
    return path


def needs_spec(requires: str) -> str:
    """A spec with only the build requirements; UnbuildableError for anything but names."""
    wanted = [line.strip() for line in requires.splitlines() if line.strip()]
    wanted = [line for line in dict.fromkeys(wanted) if not line.startswith("rpmlib(")]
    wrong = next((line for line in wanted if REQUIREMENT.fullmatch(line) is None), None)
    if wrong is not None:
        raise UnbuildableError(f"unbuildable: it asks for {wrong!r}, which is not a package")
    return NEEDS + "".join(f"BuildRequires: {line}\n" for line in wanted) + "%description\n-\n"


def defines(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The --with and --without of rpmbuild, as rpmspec takes them."""
    pairs = zip(flags[::2], flags[1::2], strict=True)
    return tuple(
        part
        for flag, name in pairs
        for part in ("--define", f"_{flag.removeprefix('--')}_{name} 1")
    )


def _copied(order: PackageOrder, spec: str, build: Path) -> Path:
    path = build / "SPECS" / order.source.control
    with writing(build):
        path.parent.mkdir()
        path.write_text(spec, encoding="utf-8")
        (build / "SOURCES").mkdir()
        for file in order.source.folder.iterdir():
            if file.name != order.source.control:
                shutil.copyfile(file, build / "SOURCES" / file.name)
    return path


def _unpacked(build: Path, origin: str) -> tuple[str, ...]:
    """Where the server's tree lies among what %prep unpacked; a library may lie next to it."""
    # rpm 4.20 and later put one folder more between.
    found = {entry.path for entry in entries(build, "BUILD")}
    folders = {path.rpartition("/")[0] for path in found}
    for depth in (1, 2):
        for above in sorted({"/".join(path.split("/")[:depth]) for path in folders}):
            if product_of_source({path.removeprefix(f"{above}/") for path in found}.__contains__):
                return ("BUILD", *above.split("/"))
    raise SourceError(
        f"{origin} unpacks to {why_no_source(found.__contains__)}",
        hint="name an SRPM of the row's product",
    )
