"""Step "reproducible": the same source, built a second time under other conditions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dsbuilds.drivers.package_build import build_packages, repository_of
from dsbuilds.failure_reason import UnbuildableError
from dsharness.content_key import file_sha256
from dsharness.errors import DeadlineError, PackageError
from dsharness.model import Build
from dsvalidate.builds_gate.made_packages import packages_in
from dsvalidate.check import Check, Figure, Gate, Status, listed
from dsvalidate.package_files import LIBEXEC, kind_of
from dsvalidate.step_tools import EvidenceFolder, Sides, StepTools, maker_of

CONDITIONS = (
    "another path, time, time zone, locale, umask, user and home, one job more, "
    "without a compiler cache"
)
NAMED_FILES, SHOWN_FILES = 3, 30  # in a sentence, and in the details
SHOWN_LINES = 12
DIFFOSCOPE_S = 240.0  # for all packages
NAME = "reproducible"


def checks(sides: Sides, tools: StepTools, evidence: EvidenceFolder) -> tuple[Check, ...]:
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
    again = replace(driver, script=LIBEXEC / f"rebuild-{kind_of(sides.row.family)}")
    return build_packages(again, tools.at, replace(order, clean=True), progress=tools.progress)


def _not_run(why: str) -> Check:
    return Gate.BUILDS.check(NAME, Status.NOT_RUN, why)


def failed_check(error: UnbuildableError) -> Check:
    """It builds under the lab's own conditions only."""
    return Gate.BUILDS.check(
        NAME, Status.FAILED,
        f"It was built once, but not a second time under other conditions ({CONDITIONS}): "
        f"{error.message}",
        advice="A build server has other conditions as well: find what the build depends on in "
        f"the log{f', {error.log}' if error.log else ''}.",
    )  # fmt: skip


def same_check(first: Build, second: Build) -> Check:
    return Gate.BUILDS.check(
        NAME, Status.PASSED,
        f"A second build under other conditions ({CONDITIONS}) made the same "
        f"{len(first.packages)} packages, byte for byte.",
        figures=_figures(second, 0),
    )  # fmt: skip


def different_check(
    first: Build, second: Build, names: tuple[str, ...], tools: StepTools, evidence: EvidenceFolder
) -> Check:
    """Say what differs, in diffoscope's words."""
    found = _differences(first, second, names, tools)
    reports = tuple(
        evidence.keep(f"differences-{each.package}.txt", each.report)
        for each in found
        if each.report
    )
    files = list(dict.fromkeys(file for each in found for file in each.files))
    places = sum(len(each.with_path) for each in found)
    path_note = (
        f" The build's path is in {places} of them: map it away (-ffile-prefix-map for C, "
        "--remap-path-prefix in RUSTFLAGS), or always build at the same place."
        if places
        else ""
    )
    return Gate.BUILDS.check(
        NAME, Status.WARNED,
        f"{len(names)} of {len(second.packages)} packages differ in a second build under "
        f"other conditions ({CONDITIONS}), in {len(files)} files: "
        f"{listed(files or names, NAMED_FILES)}.",
        advice="It can be shipped, but nobody can prove that it comes from this source; stock "
        f"packages may have the same. The differences show what a build puts in.{path_note}",
        figures=_figures(second, len(names)) | {"files_that_differ": len(files)},
        details=tuple(line for each in found for line in _summary(each)), evidence=reports,
    )  # fmt: skip


def _differences(
    first: Build, second: Build, names: tuple[str, ...], tools: StepTools
) -> tuple[PackageDifference, ...]:
    """Compare each package; where the tools gave up, the report says so."""
    both = [name for name in names if name in second.packages and name in first.packages]
    said: dict[str, str] = {}
    if both:
        folders = {"/first": repository_of(first), "/second": repository_of(second)}
        try:
            said = tools.packages.texts(
                "show-differences", f"{DIFFOSCOPE_S:.0f}", *both,
                folders=folders,
            )  # fmt: skip
        except (DeadlineError, PackageError) as error:
            said = {f"{name}.txt": f"not compared: {error.message}\n" for name in both}
    return tuple(difference_of(name, said) for name in names)


def _summary(difference: PackageDifference) -> list[str]:
    shown = [line[:200] for line in changed_lines(difference.report)[:SHOWN_LINES]]
    files = (
        listed(difference.files, SHOWN_FILES)
        or "the package itself, or it was made by one build only"
    )
    return [f"{difference.package}: {files}", *shown]


def _figures(second: Build, differ: int) -> dict[str, Figure]:
    return {
        "packages": len(second.packages),
        "packages_that_differ": differ,
        "second_build_seconds": second.provenance.seconds,
    }


def _digests(build: Build) -> dict[str, str]:
    folder = repository_of(build)
    return {each.file: file_sha256(folder / each.file) for each in packages_in(folder)}


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


def difference_of(package: str, said: Mapping[str, str]) -> PackageDifference:
    """Read what the script left of one package."""
    files = tuple(said.get(f"{package}.files", "").split())
    return PackageDifference(
        package=package,
        files=tuple(file for file in files if file not in DERIVED) or files,
        with_path=tuple(said.get(f"{package}.paths", "").splitlines()),
        report=said.get(f"{package}.txt", ""),
    )


def changed_lines(report: str) -> tuple[str, ...]:
    """The lines of the report that one side has and the other has not."""
    return tuple(line.strip() for line in report.splitlines() if CHANGED.match(line))
