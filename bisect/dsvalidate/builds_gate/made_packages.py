"""Steps "package" and "reproducible": what was built, and the same source built a second time.

The first looks whether the packages are newer than stock and say what was changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dsbuilds.drivers.package_build import build_packages, index_of, repository_of
from dsbuilds.failure_reason import UnbuildableError
from dsharness.content_key import file_sha256
from dsharness.errors import DeadlineError, PackageError
from dsharness.model import Build
from dsharness.products.catalog import packages_of
from dsvalidate.check import Check, Figure, Gate, Status, listed
from dsvalidate.package_files import LIBEXEC, kind_of
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, maker_of


@dataclass(frozen=True, kw_only=True)
class Package:
    """One file of a repository."""

    name: str
    version: str
    file: str


def packages_in(repository: Path) -> tuple[Package, ...]:
    return tuple(Package(name=n, version=v, file=f) for n, v, f in index_of(repository))


def server_of(sides: Sides) -> Package:
    """The package whose version is the product's; an image has been made with it."""
    name = packages_of(sides.row).server
    return next(
        package for package in packages_in(repository_of(sides.build)) if package.name == name
    )


def also_in_stock(sides: Sides) -> tuple[Package, ...]:
    """List the packages that were built and that the stock image has too."""
    built_packages = packages_in(repository_of(sides.build))
    return tuple(package for package in built_packages if package.name in sides.stock.packages)


ENTRY_LINES = 20
DIST = re.compile(r"\.(fc|el)\d+[^-]*$")  # of an RPM's release: changelogs leave it out
LIMIT_S = 120.0


def package_checks(sides: Sides, tools: StepTools) -> tuple[Check, ...]:
    """Check what was built (now, or before with the same inputs), its changelog, its version."""
    build, server = sides.build, server_of(sides)
    installed = sides.stock.packages.get(server.name, "")
    texts = tools.packages.texts(
        "describe-package",
        server.file,
        server.version,
        installed or "0",
        folders={"/packages": repository_of(build)},
        limit_s=LIMIT_S,
    )
    patches = [patch.name for patch in build.provenance.patches]
    return (
        made_check(build, packages_in(repository_of(build)), are_given=sides.given),
        changelog_check(newest_entry(texts.get("changelog", "")), patches, server),
        version_check(server, installed, newer=texts.get("newer", "").strip() == "yes"),
    )


def made_check(build: Build, packages: tuple[Package, ...], *, are_given: bool) -> Check:
    """Which packages there are; a build that failed never comes here."""
    origin, patches = build.provenance, build.provenance.patches
    count = f"{len(packages)} package{'s' if len(packages) != 1 else ''}"
    changed = f" with {', '.join(patch.name for patch in patches)}" if patches else ""
    origin_text = (
        "that were given" if are_given else f"built in {origin.seconds:.0f} s from {origin.source}"
    )
    figures: dict[str, Figure] = {"packages": len(packages)}
    if not are_given:
        figures["build_seconds"] = origin.seconds
    tools = [f"built with {name} {version}" for name, version in sorted(origin.tools.items())]
    return Gate.BUILDS.check(
        "package",
        Status.PASSED,
        f"{count} {origin_text}{changed}.",
        figures=figures,
        details=(
            *(f"{package.name} {package.version}" for package in packages),
            *(patch.line for patch in patches),
            *tools,
            *origin.notes,
        ),
    )


def changelog_check(entry: tuple[str, ...], patches: list[str], server: Package) -> Check:
    """The newest entry is of this version and names every patch."""
    missing = unnamed(entry, patches)
    bare = DIST.sub("", server.version.partition(":")[2] or server.version)
    if not entry:
        status, sentence = Status.WARNED, f"{server.name} has no changelog."
    elif missing:
        status = Status.WARNED
        sentence = f"The newest entry of the changelog does not name {', '.join(missing)}."
    elif bare not in entry[0]:
        status = Status.WARNED
        sentence = f"The newest entry of the changelog is not of {server.version}: {entry[0]}"
    else:
        status = Status.PASSED
        names = f" and names {', '.join(patches)}" if patches else ""
        sentence = f"The changelog's newest entry is of {server.version}{names}."
    return Gate.BUILDS.check(
        "changelog",
        status,
        sentence,
        advice="Add an entry with the new version that says what the patch changes and why.",
        details=entry[:ENTRY_LINES],
    )


def version_check(server: Package, stock: str, *, newer: bool) -> Check:
    """Whether a system would take it as an update."""
    if not stock:
        return Gate.BUILDS.check(
            "version",
            Status.NOT_RUN,
            f"The stock image has no {server.name} to compare the version with.",
        )
    if newer:
        return Gate.BUILDS.check(
            "version",
            Status.PASSED,
            f"{server.version} sorts after the stock version {stock}: it is an update.",
        )
    return Gate.BUILDS.check(
        "version",
        Status.FAILED,
        f"{server.version} does not sort after the stock version {stock}: "
        "no system would take it as an update.",
        advice="Raise the version in the changelog (deb) or the release in the spec (RPM).",
    )


DEB_END = re.compile(r"^ -- ", re.MULTILINE)
RPM_NEXT = re.compile(r"^\* ", re.MULTILINE)


def newest_entry(changelog: str) -> tuple[str, ...]:
    """Return the lines of the first entry, of Debian's kind or of RPM's; () where there is none."""
    text = changelog.lstrip()
    following = RPM_NEXT.search(text, 2) if text.startswith("* ") else DEB_END.search(text)
    entry = text[: following.start()] if following else text
    return tuple(line.rstrip() for line in entry.splitlines() if line.strip())


def unnamed(entry: Iterable[str], patches: Iterable[str]) -> tuple[str, ...]:
    """The patches that the entry does not name."""
    entry_text = "\n".join(entry)
    return tuple(name for name in patches if name not in entry_text)


CONDITIONS = (
    "another path, time, time zone, locale, umask, user and home, one job more, "
    "without a compiler cache"
)
NAMED_FILES, SHOWN_FILES = 3, 30  # in a sentence, and in the details
SHOWN_LINES = 12
DIFFOSCOPE_S = 240.0  # for all packages
NAME = "reproducible"


def reproducible_checks(
    sides: Sides, tools: StepTools, evidence: EvidenceFolder
) -> tuple[Check, ...]:
    """Compare both builds byte for byte; not run where there is nothing to build again."""
    if sides.given:
        return (_not_run("The packages were given: there is no source to build them from."),)
    try:
        second = built_again(sides, tools)
    except UnbuildableError as error:
        if not error.lasting:
            raise
        return (failed_check(error),)
    if second is None:
        return (_not_run("Only packages built by the deb and rpm drivers are built twice."),)
    first = sides.build
    names = differing(_digests(first), _digests(second))
    if not names:
        return (same_check(first, second),)
    return (different_check(first, second, names, tools, evidence),)


def built_again(sides: Sides, tools: StepTools) -> Build | None:
    """The second build: found, waited for, or made now; None where no driver makes one."""
    ordered = (
        None if sides.given else maker_of(sides.patched_row, sides.stock, tools).package_order()
    )
    if ordered is None:
        return None
    driver, order = ordered
    again = driver.again(LIBEXEC / f"rebuild-{kind_of(sides.row.family)}")
    return build_packages(again, tools.at, replace(order, clean=True), progress=tools.progress)


def _not_run(why: str) -> Check:
    return Gate.BUILDS.check(NAME, Status.NOT_RUN, why)


def failed_check(error: UnbuildableError) -> Check:
    """It builds under the lab's own conditions only."""
    return Gate.BUILDS.check(
        NAME,
        Status.FAILED,
        f"It was built once, but not a second time under other conditions ({CONDITIONS}): "
        f"{error.message}",
        advice="A build server has other conditions as well: find what the build depends on in "
        f"the log{f', {error.log}' if error.log else ''}.",
    )


def same_check(first: Build, second: Build) -> Check:
    return Gate.BUILDS.check(
        NAME,
        Status.PASSED,
        f"A second build under other conditions ({CONDITIONS}) made the same "
        f"{len(first.packages)} packages, byte for byte.",
        figures=_figures(second, 0),
    )


def different_check(
    first: Build, second: Build, names: tuple[str, ...], tools: StepTools, evidence: EvidenceFolder
) -> Check:
    """Say what differs, in diffoscope's words."""
    differences = _differences(first, second, names, tools)
    reports = tuple(
        evidence.keep(f"differences-{difference.package}.txt", difference.report)
        for difference in differences
        if difference.report
    )
    files = list(dict.fromkeys(file for difference in differences for file in difference.files))
    places = sum(len(difference.with_path) for difference in differences)
    path_note = (
        f" The build's path is in {places} of them: map it away (-ffile-prefix-map for C, "
        "--remap-path-prefix in RUSTFLAGS), or always build at the same place."
        if places
        else ""
    )
    return Gate.BUILDS.check(
        NAME,
        Status.WARNED,
        f"{len(names)} of {len(second.packages)} packages differ in a second build under "
        f"other conditions ({CONDITIONS}), in {len(files)} files: "
        f"{listed(files or names, NAMED_FILES)}.",
        advice="It can be shipped, but nobody can prove that it comes from this source; stock "
        f"packages may have the same. The differences show what a build puts in.{path_note}",
        figures=_figures(second, len(names)) | {"files_that_differ": len(files)},
        details=tuple(line for difference in differences for line in _summary(difference)),
        evidence=reports,
    )


def _differences(
    first: Build, second: Build, names: tuple[str, ...], tools: StepTools
) -> tuple[PackageDifference, ...]:
    """Compare each package; where the tools gave up, the report says so."""
    common = [name for name in names if name in second.packages and name in first.packages]
    texts: dict[str, str] = {}
    if common:
        folders = {"/first": repository_of(first), "/second": repository_of(second)}
        try:
            texts = tools.packages.texts(
                "show-differences", f"{DIFFOSCOPE_S:.0f}", *common, folders=folders
            )
        except (DeadlineError, PackageError) as error:
            texts = {f"{name}.txt": f"not compared: {error.message}\n" for name in common}
    return tuple(difference_of(name, texts) for name in names)


def _summary(difference: PackageDifference) -> list[str]:
    lines = [line[:200] for line in changed_lines(difference.report)[:SHOWN_LINES]]
    files = (
        listed(difference.files, SHOWN_FILES)
        or "the package itself, or it was made by one build only"
    )
    return [f"{difference.package}: {files}", *lines]


def _figures(second: Build, differ: int) -> dict[str, Figure]:
    return {
        "packages": len(second.packages),
        "packages_that_differ": differ,
        "second_build_seconds": second.provenance.seconds,
    }


def _digests(build: Build) -> dict[str, str]:
    folder = repository_of(build)
    return {package.file: file_sha256(folder / package.file) for package in packages_in(folder)}


# What follows from other differences: checksums of the files, and the sizes of all.
DERIVED = ("./DEBIAN/control", "./DEBIAN/md5sums")
CHANGED = re.compile(r"^[│ ]*[-+](?!-- |\+\+ )")


@dataclass(frozen=True, kw_only=True)
class PackageDifference:
    """One package of two builds."""

    package: str
    files: tuple[str, ...] = ()  # that differ
    with_path: tuple[str, ...] = ()  # that hold the place where they were built
    report: str = ""  # diffoscope's


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, ...]:
    """File names of packages whose hash differs, or that only one of the builds made."""
    return tuple(name for name in sorted({*first, *second}) if first.get(name) != second.get(name))


def difference_of(package: str, texts: Mapping[str, str]) -> PackageDifference:
    """Read what the script left of one package."""
    files = tuple(texts.get(f"{package}.files", "").split())
    return PackageDifference(
        package=package,
        files=tuple(file for file in files if file not in DERIVED) or files,
        with_path=tuple(texts.get(f"{package}.paths", "").splitlines()),
        report=texts.get(f"{package}.txt", ""),
    )


def changed_lines(report: str) -> tuple[str, ...]:
    """The lines of the report that one side has and the other has not."""
    return tuple(line.strip() for line in report.splitlines() if CHANGED.match(line))
