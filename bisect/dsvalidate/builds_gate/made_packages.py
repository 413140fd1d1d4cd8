"""Step "package": the packages, whether they are newer than stock and say what was changed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.package_build import index_of, repository_of
from dsharness.model import Build
from dsharness.products.catalog import packages_of
from dsvalidate.check import Check, Figure, Gate, Status
from dsvalidate.step_tools import Sides, StepTools


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
    return next(each for each in packages_in(repository_of(sides.build)) if each.name == name)


def also_in_stock(sides: Sides) -> tuple[Package, ...]:
    """List the packages that were built and that the stock image has too."""
    made = packages_in(repository_of(sides.build))
    return tuple(each for each in made if each.name in sides.stock.packages)


ENTRY_LINES = 20
DIST = re.compile(r"\.(fc|el)\d+[^-]*$")  # of an RPM's release: changelogs leave it out
LIMIT_S = 120.0


def checks(sides: Sides, tools: StepTools) -> tuple[Check, ...]:
    """Check what was built (now, or before with the same inputs), its changelog, its version."""
    build, server = sides.build, server_of(sides)
    installed = sides.stock.packages.get(server.name, "")
    said = tools.packages.texts(
        "describe-package", server.file, server.version, installed or "0",
        folders={"/packages": repository_of(build)}, limit_s=LIMIT_S,
    )  # fmt: skip
    patches = [patch.name for patch in build.provenance.patches]
    return (
        made_check(build, packages_in(repository_of(build)), given=sides.given),
        changelog_check(newest_entry(said.get("changelog", "")), patches, server),
        version_check(server, installed, newer=said.get("newer", "").strip() == "yes"),
    )


def made_check(build: Build, made: tuple[Package, ...], *, given: bool) -> Check:
    """Which packages there are; a build that failed never comes here."""
    origin, patches = build.provenance, build.provenance.patches
    count = f"{len(made)} package{'s' if len(made) != 1 else ''}"
    changed = f" with {', '.join(patch.name for patch in patches)}" if patches else ""
    how = "that were given" if given else f"built in {origin.seconds:.0f} s from {origin.source}"
    figures: dict[str, Figure] = {"packages": len(made)}
    if not given:
        figures["build_seconds"] = origin.seconds
    tools = [f"built with {name} {version}" for name, version in sorted(origin.tools.items())]
    return Gate.BUILDS.check(
        "package", Status.PASSED, f"{count} {how}{changed}.", figures=figures,
        details=(
            *(f"{each.name} {each.version}" for each in made),
            *(patch.line for patch in patches),
            *tools,
            *origin.notes,
        ),
    )  # fmt: skip


def changelog_check(entry: tuple[str, ...], patches: list[str], server: Package) -> Check:
    """The newest entry is of this version and names every patch."""
    missing = unnamed(entry, patches)
    bare = DIST.sub("", server.version.partition(":")[2] or server.version)
    if not entry:
        status, found = Status.WARNED, f"{server.name} has no changelog."
    elif missing:
        status = Status.WARNED
        found = f"The newest entry of the changelog does not name {', '.join(missing)}."
    elif bare not in entry[0]:
        status = Status.WARNED
        found = f"The newest entry of the changelog is not of {server.version}: {entry[0]}"
    else:
        status = Status.PASSED
        names = f" and names {', '.join(patches)}" if patches else ""
        found = f"The changelog's newest entry is of {server.version}{names}."
    return Gate.BUILDS.check(
        "changelog", status, found,
        advice="Add an entry with the new version that says what the patch changes and why.",
        details=entry[:ENTRY_LINES],
    )  # fmt: skip


def version_check(server: Package, stock: str, *, newer: bool) -> Check:
    """Whether a system would take it as an update."""
    if not stock:
        return Gate.BUILDS.check(
            "version", Status.NOT_RUN,
            f"The stock image has no {server.name} to compare the version with.",
        )  # fmt: skip
    if newer:
        return Gate.BUILDS.check(
            "version", Status.PASSED,
            f"{server.version} sorts after the stock version {stock}: it is an update.",
        )  # fmt: skip
    return Gate.BUILDS.check(
        "version", Status.FAILED,
        f"{server.version} does not sort after the stock version {stock}: "
        "no system would take it as an update.",
        advice="Raise the version in the changelog (deb) or the release in the spec (RPM).",
    )  # fmt: skip


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
    said = "\n".join(entry)
    return tuple(name for name in patches if name not in said)
