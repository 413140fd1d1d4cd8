"""RPM packages: rpmbuild of a source RPM with further patches, in a container of the row."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dsbuilds.drivers.package_build import (
    LIBEXEC,
    WHO,
    PackageDriver,
    PackageOrder,
    headed,
    one_line,
)
from dsbuilds.drivers.package_image import dependencies_shop
from dsbuilds.failure_reason import UnbuildableError, cause_of
from dsbuilds.sandbox.sandbox import confined_run, work_folder
from dsbuilds.sandbox.untrusted_files import copy_output, entries, plain_file
from dsbuilds.sources.source_tree import Tree
from dsbuilds.toolchains.toolchain_image import ToolchainImage
from dsharness.errors import EditError, SourceError
from dsharness.model import DriverName
from dsharness.process.command import writing
from dsharness.products import product_of_source, why_no_source
from dsharness.progress import Progress
from dsimages.buildah import Workshop

SUFFIX = ".dsbisect1"
FIRST = 9001  # of our patches: beyond what packagers number
SECTION = re.compile(
    r"^%(description|package|prep|generate_buildrequires|conf|build|install|check|clean|files"
    r"|changelog|pre|post|preun|postun|pretrans|posttrans|trigger\w*|verifyscript|sepolicy)\b"
)
TAGGED = re.compile(r"^(Patch|Source)(?P<number>\d*)\s*:", re.IGNORECASE)
OPENS = re.compile(r"^%if")
CLOSES = re.compile(r"^%endif\b")
RELEASE = re.compile(r"^(?P<tag>Release\s*:\s*)(?P<value>\S.*?)\s*$", re.IGNORECASE | re.MULTILINE)
AUTOMATIC = re.compile(r"^%auto(setup|patch)\b(?P<rest>.*)$")
BY_HAND = re.compile(r"^%(setup|patch)")
CHANGELOG = re.compile(r"^%changelog\b[^\n]*(\n|\Z)", re.MULTILINE)
ENTRY = re.compile(
    r"^\*\s+(?P<date>[A-Z][a-z]{2}\s+[A-Z][a-z]{2}\s+\d+\s+(?:\d\d:\d\d:\d\d\s+\S+\s+)?\d{4})\s",
    re.MULTILINE,
)
FIRST_DATE = "Fri Jan 01 2010"  # where there is no entry before ours: a date that stays
FULL_VERSION = "%{?epoch:%{epoch}:}%{version}-%{release}"


def with_patches(spec: str, names: Sequence[str]) -> str:
    """Return the spec with patches that %prep applies as the last ones, with -p1."""
    if not names:
        return spec
    lines = spec.splitlines()
    numbers = list(range(FIRST, FIRST + len(names)))
    tagged = _tagged(lines)
    used_numbers = {int(match["number"]) for match in tagged.values() if match["number"]}
    if used_numbers & set(numbers):
        raise SourceError(
            f"the spec has a Patch{min(used_numbers & set(numbers))} already",
            hint="it was built by this lab before: start from the packager's own",
        )
    place = _preamble_end(lines, max(tagged, default=None))
    tags = [f"Patch{number}: {name}" for number, name in zip(numbers, names, strict=True)]
    first, last = _prep(lines)
    applied = _applied(lines[first:last], numbers)
    return "\n".join([*lines[:place], *tags, *lines[place:first], *applied, *lines[last:], ""])


def with_release(spec: str) -> str:
    """Return the spec with a release that sorts right after the packager's."""
    match = RELEASE.search(spec)
    if match is None:
        raise SourceError("the spec has no Release", hint="name an SRPM that rpmbuild takes")
    return f"{spec[: match.end('value')]}{SUFFIX}{spec[match.end('value') :]}"


def with_changelog(spec: str, changes: Sequence[str]) -> str:
    """Return the spec with an entry on top; its date is the last one's, so that builds repeat."""
    section = CHANGELOG.search(spec)
    last = ENTRY.search(spec, section.end()) if section else None
    date = last["date"] if last else FIRST_DATE
    # Macros are expanded in a changelog too.
    lines = [one_line(change).replace("%", "%%") for change in changes or ("Rebuilt as it is.",)]
    entry = "\n".join(
        [f"* {date} {WHO} - {FULL_VERSION}", *(f"- {line}" for line in lines), "", ""]
    )
    if section is None:
        end = "" if not spec or spec.endswith("\n") else "\n"
        return f"{spec}{end}\n%changelog\n{entry}"
    heading = spec[: section.end()]
    end = "" if heading.endswith("\n") else "\n"
    return f"{heading}{end}{entry}{spec[section.end() :]}"


def _tagged(lines: list[str]) -> dict[int, re.Match[str]]:
    """Map lines to the source or patch they name; texts and scripts may hold such words too."""
    tags_by_line: dict[int, re.Match[str]] = {}
    in_preamble = True
    for number, line in enumerate(lines):
        section = SECTION.match(line)
        if section is not None:
            in_preamble = section[1] == "package"
        elif in_preamble and (tag := TAGGED.match(line)) is not None:
            tags_by_line[number] = tag
    return tags_by_line


def _preamble_end(lines: list[str], last: int | None) -> int:
    """Return the line after the last source or patch, outside any %if that it stands in."""
    if last is None:
        return next(
            (number for number, line in enumerate(lines) if SECTION.match(line)), len(lines)
        )
    return _outside(lines, last + 1)


def _prep(lines: list[str]) -> tuple[int, int]:
    first = next((number for number, line in enumerate(lines) if re.match(r"^%prep\b", line)), None)
    if first is None:
        raise SourceError("the spec has no %prep", hint="name an SRPM that rpmbuild takes")
    later = range(first + 1, len(lines))
    last = next((number for number in later if SECTION.match(lines[number])), len(lines))
    return first, last


def _applied(prep: list[str], numbers: Sequence[int]) -> list[str]:
    """Return %prep that applies our patches, unless it applies every patch by itself."""
    automatic = [match for line in prep if (match := AUTOMATIC.match(line))]
    # -N applies none; -m and -M apply a range, which ends before our numbers.
    applying = [match for match in automatic if not re.search(r"\s-[NmM]\b", match["rest"])]
    if applying:
        arguments = applying[-1]["rest"]
        if not re.search(r"\s-p\s*1\b", arguments):
            raise EditError(
                f"the spec applies its patches by {applying[-1][0].strip()!r}, not with -p1",
                hint="patches of this lab are made for -p1: give %autosetup -p1",
            )
        return prep
    places = [
        number for number, line in enumerate(prep) if BY_HAND.match(line) or AUTOMATIC.match(line)
    ]
    place = _outside(prep, max(places) + 1 if places else len(prep))
    ours = [f"%patch -P {number} -p1" for number in numbers]
    return [*prep[:place], *ours, *prep[place:]]


def _outside(lines: list[str], place: int) -> int:
    """Return the first line from there that stands in no %if."""
    depth = sum(1 if OPENS.match(x) else -1 if CLOSES.match(x) else 0 for x in lines[:place])
    while depth > 0 and place < len(lines):
        depth += 1 if OPENS.match(lines[place]) else -1 if CLOSES.match(lines[place]) else 0
        place += 1
    return place


TOOLS = LIBEXEC / "install-rpm-tools"
REQUIRES = LIBEXEC / "list-build-requires"
INSTALL = LIBEXEC / "install-build-depends-dnf"
REQUIRES_CHARACTERS = 1 << 20
# A name, a path, a capability with a version, or several in brackets; nothing that rpm evaluates.
REQUIREMENT = re.compile(r"[(/A-Za-z0-9_][A-Za-z0-9_ ()./:+~^<>=,@-]{0,400}")
NEEDS = "Name: needs\nVersion: 0\nRelease: 0\nSummary: -\nLicense: -\n"
PREPARE = LIBEXEC / "prepare-rpm"


@dataclass(frozen=True, kw_only=True)
class RpmDriver(PackageDriver):
    """rpmbuild in the row's image with the spec's build dependencies."""

    name: DriverName = DriverName.RPM
    revision: int = 2
    script: Path = LIBEXEC / "build-rpm"
    flags: tuple[str, ...] = ()  # of rpmbuild, e.g. --without bundle_jemalloc

    def toolset(
        self, workshop: Workshop, order: PackageOrder, *, progress: Progress
    ) -> ToolchainImage:
        """Return the row's image and the spec's BuildRequires.

        Who reads a spec runs it: its macros are evaluated without a network, and what they come to
        is installed.
        """
        tools = dependencies_shop(workshop, order, TOOLS, "", {}, progress=progress)
        files = {"needs.spec": needs_spec(self._requires(workshop, order, tools))}
        return dependencies_shop(
            workshop, order, INSTALL, "needs.spec", files, base=tools, progress=progress
        )

    def _requires(self, workshop: Workshop, order: PackageOrder, tools: ToolchainImage) -> str:
        with work_folder() as work:
            build = work / "build"
            build.mkdir()
            _copied(order, order.source.control_text, build)
            output = confined_run(
                workshop,
                tools.reference,
                REQUIRES,
                order.source.control,
                *defines(self.flags),
                build=build,
                limits=order.limits,
            )
            if output is not None:
                raise UnbuildableError(
                    f"the spec of {order.source.origin} cannot be read: {cause_of(output)}",
                    log=workshop.log,
                )
            copy_output(build, "needs", target=work / "needs", keep=plain_file)
            with (work / "needs" / "requires").open(encoding="utf-8", errors="replace") as stream:
                return stream.read(REQUIRES_CHARACTERS)

    def unpack(
        self, workshop: Workshop, order: PackageOrder, toolset: ToolchainImage, build: Path
    ) -> str | None:
        """Return the tree as `rpmbuild -bp` leaves it."""
        _copied(order, order.source.control_text, build)
        return confined_run(
            workshop,
            toolset.reference,
            PREPARE,
            order.source.control,
            *self.flags,
            build=build,
            limits=order.limits,
        )

    def unpacked_at(self, build: Path, origin: str) -> tuple[str, ...]:
        """Return the place below BUILD; a library may lie next to the server's tree."""
        # rpm 4.20 and later put one folder more between.
        paths = {entry.path for entry in entries(build, "BUILD")}
        folders = {path.rpartition("/")[0] for path in paths}
        for depth in (1, 2):
            for above in sorted({"/".join(path.split("/")[:depth]) for path in folders}):
                files = {path.removeprefix(f"{above}/") for path in paths}
                if product_of_source(files.__contains__):
                    return ("BUILD", *above.split("/"))
        raise SourceError(
            f"{origin} unpacks to {why_no_source(paths.__contains__)}",
            hint="name an SRPM of the row's product",
        )

    def lay_out(self, order: PackageOrder, tree: Tree, build: Path) -> None:
        """Fill SPECS and SOURCES; %prep unpacks and patches by itself."""
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
    """Return a spec with only the build requirements; UnbuildableError for anything but names."""
    names = [line.strip() for line in requires.splitlines() if line.strip()]
    names = [line for line in dict.fromkeys(names) if not line.startswith("rpmlib(")]
    wrong = next((line for line in names if REQUIREMENT.fullmatch(line) is None), None)
    if wrong is not None:
        raise UnbuildableError(f"unbuildable: it asks for {wrong!r}, which is not a package")
    return NEEDS + "".join(f"BuildRequires: {line}\n" for line in names) + "%description\n-\n"


def defines(flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the --with and --without of rpmbuild, as rpmspec takes them."""
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
