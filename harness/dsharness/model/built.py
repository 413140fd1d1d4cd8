"""What is built from source: what a row asks for, and what a build leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from dsharness.model.value import Identifier, PackageName, Shown, Value, Version

ToldFacts = Mapping[str, str | int]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class DriverName(StrEnum):
    """How a source becomes something to serve."""

    TREE = "tree"  # an install tree laid over a row's image
    DEB = "deb"  # dpkg-buildpackage
    RPM = "rpm"  # rpmbuild


class RpmBuilder(StrEnum):
    """What the `rpm` driver has its packages built by."""

    CONTAINER = "container"  # of the row's image
    MOCK = "mock"  # in its chroot of the row's repositories


class GitSource(Value):
    """A revision of a repository, by URL or path."""

    kind: Literal["git"] = "git"
    url: str
    revision: str


class DistributionSource(Value):
    """The source package that the row's own distribution offers."""

    kind: Literal["distribution"] = "distribution"
    package: PackageName | None = Field(default=None, description="default: of the row's product")
    version: Version | None = Field(default=None, description="upstream or full; default: newest")
    original: bool = Field(
        default=False, description="upstream's archive in it alone, without the packager's changes"
    )
    sha256: Digest | None = Field(default=None, description="of that archive; with `original`")


class SrpmSource(Value):
    """A source RPM: a file, a URL, or what Koji keeps."""

    kind: Literal["srpm"] = "srpm"
    location: str
    sha256: Digest | None = None


class TarballSource(Value):
    """A release archive: a file or a URL."""

    kind: Literal["tarball"] = "tarball"
    location: str
    sha256: Digest | None = None


SourceSpec = Annotated[
    GitSource | DistributionSource | SrpmSource | TarballSource, Field(discriminator="kind")
]


class BuildSpec(Value):
    """What a row wants built, and installed over what its packages brought."""

    driver: DriverName
    builder: RpmBuilder = Field(
        default=RpmBuilder.CONTAINER, description="of the rpm driver: what runs rpmbuild"
    )
    onto: Identifier | None = Field(
        default=None, description="the row whose image it is installed over; default: the row's own"
    )
    source: SourceSpec = Field(default_factory=DistributionSource)
    edits: tuple[str, ...] = Field(default=(), description="e.g. default-scheme=PBKDF2_SHA256")
    patches: tuple[str, ...] = Field(default=(), description="files, relative to the matrix")


class Toolchain(Value):
    """What builds sources of one era: a row's system and further packages."""

    id: Identifier
    row: Identifier
    packages: tuple[PackageName, ...]
    offers: tuple[str, ...] = Field(description="what a tree may need: see docs/builds.md")


class AppliedPatch(Value):
    """A change to a source before it was built."""

    name: str
    title: str
    sha256: str

    @property
    def line(self) -> str:
        """Its name and what it does; most titles have the name in them."""
        return self.title if self.name in self.title else f"{self.name}: {self.title}"


class Provenance(Value):
    """Where a build comes from and how it was made."""

    driver: DriverName
    source: Shown = Field(description="in words: a URL, a package and version, a file")
    revision: str | None = None
    tree: str = Field(description="git's hash of all files that were built, patches included")
    patches: tuple[AppliedPatch, ...] = ()
    toolchain: str = Field(description="the image it was built in, or mock")
    toolchain_id: str = Field(default="", description="as the matrix calls it")
    tools: dict[str, str] = Field(default_factory=dict, description="compilers and libraries")
    flags: tuple[str, ...] = Field(default=(), description="of configure, then of the build")
    notes: tuple[str, ...] = Field(default=(), description="e.g. what was left out, and why")
    clean: bool = Field(description="from an empty folder, not on top of another build")
    seconds: float
    built_at: str
    log: str

    @property
    def tree_name(self) -> str:
        """What a tree has instead of a version."""
        return f"tree {self.tree[:12]}"


class PromisedFact(Value):
    """A fact that a server must tell, if it also tells those of ``where``."""

    name: str
    value: str | int
    where: dict[str, str | int] = Field(default_factory=dict)

    @property
    def key(self) -> tuple[list[tuple[str, str]], str]:
        """What it speaks of; what holds for every server comes first."""
        return sorted((name, str(value)) for name, value in self.where.items()), self.name

    def asked_of(self, facts: ToldFacts) -> bool:
        return all(_alike(facts.get(name), value) for name, value in self.where.items())


class Promise(Value):
    """What a server must say of itself when the edits of its build have taken effect."""

    facts: tuple[PromisedFact, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _as_stored_before(cls, data: object) -> object:
        """Read a record of when promises were a scheme of passwords, and rounds by scheme."""
        if not isinstance(data, dict) or not data.keys() & {"scheme", "rounds"}:
            return data
        scheme, rounds = data.get("scheme"), data.get("rounds") or {}
        facts = [{"name": "password-scheme", "value": scheme}] if scheme else []
        for name, number in rounds.items():
            where = {"password-scheme": name}
            facts.append({"name": "password-rounds", "value": number, "where": where})
        return {"facts": facts}

    def then(self, later: Promise) -> Promise:
        """Return both at once; where both speak of the same, the later one holds."""
        by_key = {str(fact.key): fact for fact in (*self.facts, *later.facts)}
        return Promise(facts=tuple(sorted(by_key.values(), key=lambda fact: fact.key)))

    def without(self, names: Iterable[str]) -> Promise:
        """Leave out these facts, which something else decides."""
        left_out = set(names)
        return Promise(facts=tuple(fact for fact in self.facts if fact.name not in left_out))

    def asked_of(self, facts: ToldFacts) -> bool:
        """Return whether anything is promised of a server with these facts."""
        return any(fact.asked_of(facts) for fact in self.facts)

    def broken_by(self, facts: ToldFacts) -> str | None:
        """Say why these facts of a server are not what was promised; None when they are."""
        for fact in self.facts:
            value = facts.get(fact.name)
            if fact.asked_of(facts) and not _alike(value, fact.value):
                condition = "".join(f" with {name} {value}" for name, value in fact.where.items())
                shown_value = "not told" if value is None else value
                return f"{fact.name}{condition} is {shown_value}, not {fact.value}"
        return None


def _alike(value: str | int | None, promised: str | int) -> bool:
    return value is not None and str(value).upper() == str(promised).upper()


class Build(Value):
    """What was built, and all that is needed to serve it."""

    key: str
    folder: str = Field(description="install tree, or a repository of packages")
    content: str = Field(description="hash of what was built: equal builds serve equally")
    packages: tuple[str, ...] = ()
    promise: Promise = Promise()
    provenance: Provenance
