"""What the lab knows of a program: the shapes of product.yaml, source.yaml and known_changes.yaml.

A known change is one that moves the program's cost. It names no row of a matrix, and a reason may
cite it only when the versions and the facts that were measured fit it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import cached_property
from string import Formatter
from typing import Annotated

from pydantic import AfterValidator, Field, PositiveFloat

from dsharness.model import Facts, Identifier, SystemName, Value
from dsharness.model.value import PackageName

FolderName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*$")]
Release = Annotated[str, Field(pattern=r"^\d+(\.\d+)*$")]
FactTest = dict[str, tuple[str | int, ...]]  # a fact's name -> the values it may have


class FactsChange(Value):
    """What the system says of itself on either side."""

    before: FactTest = Field(default_factory=dict)
    after: FactTest = Field(default_factory=dict)

    def fits(self, before: Facts, after: Facts) -> bool:
        return _fits(self.before, before) and _fits(self.after, after)


class KnownChange(Value):
    """One change: what it did, the first release of each branch that has it, how one sees it."""

    issue: int | str
    what: str
    first: tuple[Release, ...] = Field(min_length=1, description="one release for each branch")
    operations: tuple[str, ...] = Field(
        default=(), description="whose cost it moves; none: it may be any"
    )
    unless_set: tuple[str, ...] = Field(
        default=(), description="options with which settings hide it, e.g. a changed default"
    )
    seen_by: tuple[FactsChange, ...] = Field(
        default=(), description="one of these must fit; none: the versions are all that is asked"
    )

    @property
    def releases(self) -> str:
        return ", ".join(self.first)

    def fits(self, before: Facts, after: Facts) -> bool:
        return not self.seen_by or any(test.fits(before, after) for test in self.seen_by)

    def is_in(self, version: tuple[int, ...]) -> bool:
        """Branches run in parallel: 3.0.5 is younger than 2.6.0, and has not what 2.6.1 has."""
        firsts = [numbers(release) for release in self.first]
        branch = [first for first in firsts if first[:2] == version[:2]]
        if branch:
            return version >= branch[0]
        return any(first[:2] < version[:2] for first in firsts)


class KnownChanges(Value):
    """The whole of known_changes.yaml."""

    changes: tuple[KnownChange, ...] = ()

    def between(
        self, before: tuple[str, Facts], after: tuple[str, Facts]
    ) -> tuple[KnownChange, ...]:
        """Those that lie between two measured versions and fit what these say of themselves."""
        old, new = numbers(before[0]), numbers(after[0])
        if not old or not new:
            return ()
        return tuple(
            change
            for change in self.changes
            if change.fits(before[1], after[1]) and not change.is_in(old) and change.is_in(new)
        )


def numbers(version: str) -> tuple[int, ...]:
    """The upstream part of a package's version: ``2:3.61-1+deb11u3`` is (3, 61)."""
    match = re.match(r"(?:\d+:)?v?(\d+(?:\.\d+)*)", version)
    return tuple(map(int, match[1].split("."))) if match else ()


def _fits(fact_test: FactTest, facts: Facts) -> bool:
    return all(facts.get(name) in allowed for name, allowed in fact_test.items())


SERVER = "server"  # the kind of every file that no pattern says to be something else


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Regex = Annotated[str, AfterValidator(_regex)]


class ProductPackages(Value):
    """How one package format calls what the program is installed from."""

    server: PackageName = Field(description="the package whose version is the product's")
    siblings: tuple[PackageName, ...] = Field(
        default=(), description="made from the same source; they must have the same version"
    )
    source: PackageName = Field(description="the source package")

    @property
    def all(self) -> tuple[str, ...]:
        return (self.server, *self.siblings)


class ProductSuite(Value):
    """What brings the product along; a row may state its version too."""

    title: str
    packages: tuple[PackageName, ...] = Field(
        default=(), description="the first that is installed counts"
    )
    systems: tuple[str, ...] = Field(description="that may state its version")
    required_by: tuple[str, ...] = Field(default=(), description="systems that must state it")


class SpecTemplate(Value):
    """The RPM spec file that a source tree carries, and how it is filled in."""

    file: str
    version_file: str = Field(description="has VERSION_MAJOR, VERSION_MINOR and VERSION_MAINT")
    placeholders: dict[str, str] = Field(description="__NAME__ -> what the tree's own tools put")
    without: tuple[str, ...] = Field(default=(), description="bcond options that are switched off")

    def version_in(self, text: str) -> str | None:
        """What the version file says: 1.4.3.24, of which the last two numbers are one part."""
        matches = [
            re.search(rf"^VERSION_{part}=(\d+(?:\.\d+)*)\s*$", text, re.MULTILINE)
            for part in ("MAJOR", "MINOR", "MAINT")
        ]
        numbers = [number[1] for number in matches if number is not None]
        return ".".join(numbers) if len(numbers) == len(matches) else None


class SourceFacts(Value):
    """What is known of a product's source (source.yaml)."""

    must_have: tuple[str, ...] = Field(
        min_length=1, description="files that every version has: otherwise it is not a source of it"
    )
    release_tags: str = Field(default="*", description="pattern of the tags that are releases")
    release_branches: str = Field(
        default="*", description="pattern of the branches that releases are made from, by name"
    )
    files: dict[str, str] = Field(
        default_factory=dict,
        description="pattern -> kind; the first that fits counts. All else is the server",
    )
    installed: tuple[FolderName, ...] = Field(
        default=("opt",), description="top folders of what it installs: all that an image takes"
    )
    build_files: tuple[str, ...] = Field(
        default=(), description="patterns of the files that say what a build reads"
    )
    unread: dict[str, Regex | None] = Field(
        default_factory=dict,
        description="folder that a build does not read -> what the build files must say for that",
    )
    hot_paths: dict[str, PositiveFloat] = Field(
        default_factory=dict,
        description="pattern -> how likely a commit is the culprit that changes such a file",
    )
    other_paths: PositiveFloat = Field(default=0.5, description="the same, for all other files")
    spec: SpecTemplate | None = None
    commit_pages: dict[Regex, str] = Field(
        default_factory=dict, description="host -> the word before a commit in its page's address"
    )

    @cached_property
    def _kinds(self) -> re.Pattern[str]:
        return re.compile("|".join(f"({translate(pattern)})" for pattern in self.files) or r"(?!)")

    def unread_by(self, build: str) -> tuple[str, ...]:
        """The folders that a build with these build files does not read."""
        return tuple(
            folder
            for folder, needed in self.unread.items()
            if needed is None or re.search(needed, build)
        )

    def kind_of(self, path: str) -> str:
        """What a file is part of: the server, or something next to it."""
        match = self._kinds.match(path)
        return SERVER if match is None else tuple(self.files.values())[(match.lastindex or 1) - 1]

    def kinds_of(self, paths: Iterable[str]) -> tuple[str, ...]:
        """What a change touches, in words, without doubles."""
        return tuple(sorted({self.kind_of(path) for path in paths}))


def _template(text: str) -> str:
    """Text with one column of a table in it, like ``{rounds:,} rounds``."""
    try:
        columns = [name for _, name, _, _ in Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise ValueError(f"not a text with a column's name: {error}") from error
    if len(columns) != 1 or not columns[0].isidentifier():
        raise ValueError("needs one column's name in braces")
    return text


Template = Annotated[str, AfterValidator(_template)]


class ReleaseFacts(Value):
    """How a product's tagged releases (releases.csv) are read and shown."""

    branch: Regex = Field(default=r"\d+\.\d+", description="what of a version names its branch")
    title: str = Field(default="", description="what of a release is shown")
    shown: tuple[Template, ...] = Field(
        default=(), description="with a column's name; left out where that column is empty"
    )

    def branch_of(self, version: str) -> str:
        match = re.match(self.branch, version)
        return match[0] if match else version

    def text_of(self, columns: Mapping[str, str]) -> str:
        """What is shown of a release; KeyError for a column that the table does not have."""
        parts = []
        for template in self.shown:
            name = next(name for _, name, _, _ in Formatter().parse(template) if name)
            if value := columns[name]:
                parts.append(template.format(**{name: int(value) if value.isdigit() else value}))
        return ", ".join(parts)


class Product(Value):
    """What is known of a product (product.yaml); the folder's name is its id."""

    title: str
    systems: tuple[str, ...] = Field(min_length=1, description="drivers that serve it")
    source_system: SystemName | None = Field(
        default=None, description="of these, the one that serves what was built from a source tree"
    )
    deb: ProductPackages | None = None
    rpm: ProductPackages | None = None
    suites: dict[Identifier, ProductSuite] = Field(default_factory=dict)
    libraries: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="library whose version matters -> its packages; the first installed counts",
    )
    explainers: tuple[Identifier, ...] = Field(
        default=(), description="what a report knows of its facts, by name"
    )
    facts: dict[Identifier, str] = Field(
        default_factory=dict,
        description="fact that a report shows as the server tells it -> heading of its column",
    )
    releases: ReleaseFacts = ReleaseFacts()
    issues: str | None = Field(default=None, description="address of an issue; {issue} is its id")
    process: str | None = Field(default=None, description="name of the server's own process")

    @property
    def servers(self) -> tuple[str, ...]:
        """The server's package, by every format's name."""
        servers_known = [
            packages.server for packages in (self.deb, self.rpm) if packages is not None
        ]
        return tuple(dict.fromkeys(servers_known))

    def links_of(self, issue: int | str) -> tuple[str, ...]:
        """The page of an issue, where it is known how such pages are called."""
        return () if self.issues is None else (self.issues.format(issue=issue),)

    def version(self, packages: Mapping[str, str]) -> str | None:
        """Which version is installed."""
        return first_of(self.servers, packages)


def first_of(names: Iterable[str], packages: Mapping[str, str]) -> str | None:
    """The version of the first of these packages that is installed."""
    return next((packages[name] for name in names if name in packages), None)
