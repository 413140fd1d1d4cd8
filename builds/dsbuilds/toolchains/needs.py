"""What a tree needs to be built, read from the tree itself and never from its version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

import pydantic
from pydantic import Discriminator, Field, Tag

from dsharness.errors import BuildError
from dsharness.model import Value
from dsharness.products import build_needs_file, product_of_source, why_no_source
from dsharness.yaml_files.shape import read_checked

CARGO_LOCK = "src/Cargo.lock"

Files = Callable[[str], "str | None"]


class Crates(StrEnum):
    """Where a tree's Rust crates come from."""

    NONE = "none"  # it has no Rust, or Rust is left out
    LOCKED = "locked"  # Cargo.lock names each with its checksum
    SYSTEM = "system"  # those of the toolchain's distribution


@dataclass(frozen=True, kw_only=True)
class View:
    """A tree as a condition sees it, and the traits that were found in it so far."""

    files: Files
    places: Mapping[str, tuple[str, ...]]
    found: AbstractSet[str]

    def says(self, pattern: str, place: str) -> bool:
        texts = ((self.files(path) or "").replace("\\\n", " ") for path in self.places[place])
        return any(re.search(pattern, text, re.MULTILINE) for text in texts)


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from error
    return text


Regex = Annotated[str, pydantic.AfterValidator(_regex)]


class Condition(Value):
    """One thing that must hold."""

    def holds(self, view: View) -> bool:
        raise NotImplementedError

    @property
    def traits(self) -> frozenset[str]:
        """Traits that it refers to: they must be above it."""
        return frozenset()


class Says(Condition):
    place: str = Field(alias="in")
    says: Regex

    def holds(self, view: View) -> bool:
        return view.says(self.says, self.place)


class Silent(Condition):
    place: str = Field(alias="in")
    silent: Regex

    def holds(self, view: View) -> bool:
        return not view.says(self.silent, self.place)


class Has(Condition):
    has: str

    def holds(self, view: View) -> bool:
        return view.files(self.has) is not None


class Lacks(Condition):
    lacks: str

    def holds(self, view: View) -> bool:
        return view.files(self.lacks) is None


class OldCrate(Condition):
    crate: str
    before: str = Field(pattern=r"^\d+(\.\d+)*$")

    def holds(self, view: View) -> bool:
        locked = versions_of(self.crate, view.files(CARGO_LOCK) or "")
        return any(numbers(version) < numbers(self.before) for version in locked)


class Holds(Condition):
    trait: str

    def holds(self, view: View) -> bool:
        return self.trait in view.found

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({self.trait})


class Fails(Condition):
    without: str

    def holds(self, view: View) -> bool:
        return self.without not in view.found

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({self.without})


class Either(Condition):
    either: tuple[str, ...]

    def holds(self, view: View) -> bool:
        return not view.found.isdisjoint(self.either)

    @property
    def traits(self) -> frozenset[str]:
        return frozenset(self.either)


class Gives(Value):
    """What a tree of a trait needs."""

    offers: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    crates: Crates | None = None
    optional: str | None = None
    databases: tuple[str, ...] = ()
    note: str | None = None


KINDS = ("says", "silent", "has", "lacks", "crate", "trait", "without", "either")


def _kind(condition: Mapping[str, object] | Condition) -> str | None:
    """Which condition is meant, by the key that only this one has."""
    keys = condition if isinstance(condition, Mapping) else type(condition).model_fields
    return next((kind for kind in KINDS if kind in keys), None)


AnyCondition = Annotated[
    Annotated[Says, Tag("says")]
    | Annotated[Silent, Tag("silent")]
    | Annotated[Has, Tag("has")]
    | Annotated[Lacks, Tag("lacks")]
    | Annotated[OldCrate, Tag("crate")]
    | Annotated[Holds, Tag("trait")]
    | Annotated[Fails, Tag("without")]
    | Annotated[Either, Tag("either")],
    Discriminator(_kind),
]


class Trait(Value):
    """One thing that trees show, and what it takes to build them."""

    id: str
    when: tuple[AnyCondition, ...] = ()
    gives: Gives = Gives()
    shown: bool = False  # in a survey's table: it tells eras apart


class Eras(Value):
    """All that is known; the order counts, since a trait may build on those above it."""

    places: dict[str, tuple[str, ...]]
    traits: tuple[Trait, ...]

    @pydantic.model_validator(mode="after")
    def _names_are_known(self) -> Eras:
        above: set[str] = set()
        for trait in self.traits:
            named = frozenset[str]().union(*(each.traits for each in trait.when))
            placed = {each.place for each in trait.when if isinstance(each, Says | Silent)}
            unknown = [*sorted(named - above), *sorted(placed - self.places.keys())]
            if unknown:
                raise ValueError(f"{trait.id}: no {', '.join(unknown)} above it")
            if trait.id in above:
                raise ValueError(f"{trait.id}: a second time")
            above.add(trait.id)
        return self

    def of(self, files: Files, left_out: AbstractSet[str] = frozenset()) -> tuple[Trait, ...]:
        """The traits of a tree, without the optional parts that are left out."""
        found: dict[str, Trait] = {}
        for trait in self.traits:
            view = View(files=files, places=self.places, found=found.keys())
            if trait.gives.optional not in left_out and all(
                condition.holds(view) for condition in trait.when
            ):
                found[trait.id] = trait
        return tuple(found.values())


def versions_of(crate: str, lock: str) -> list[str]:
    """The versions in which a Cargo.lock of any format names a crate."""
    return re.findall(rf'^name = "{re.escape(crate)}"\nversion = "([^"]+)"', lock, re.MULTILINE)


def numbers(version: str) -> tuple[int, ...]:
    """0.9.64+1.1.1 -> 0, 9, 64."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[+-]", version)[0]))


HINT = "correct the file; its head says what each key means"


def eras_of(product: str) -> Eras | None:
    """Those of a product; None when the lab does not know how to build it."""
    path = build_needs_file(product)
    return None if path is None else eras(path)


@cache
def eras(path: Path) -> Eras:
    """The data of a file, read once; FileProblemsError says what is wrong in it."""
    return read_checked(path, Eras, hint=HINT)


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a toolchain must offer, and the options of configure and the build."""

    product: str  # whose source it is
    words: frozenset[str]
    crates: Crates
    flags: tuple[str, ...]
    settings: tuple[str, ...] = ()  # NAME=VALUE
    optional: frozenset[str] = frozenset()  # parts that the tree can be built without
    databases: tuple[
        str, ...
    ] = ()  # libraries that its server can keep its data in, its own choice first
    notes: tuple[str, ...] = ()  # what a reader of a result should know of the build


def product_of_tree(files: Files) -> str:
    """Whose source it is; BuildError for one that the lab cannot build."""
    return _eras(files)[0]


def needs_of(files: Files, left_out: AbstractSet[str] = frozenset()) -> Needs:
    """Look into a tree; BuildError if the lab cannot build such a source.

    ``left_out`` names optional parts that it is to be built without.
    """
    files = cache(files)
    product, known = _eras(files)
    given = [trait.gives for trait in known.of(files, left_out)]
    crates = [each.crates for each in given if each.crates is not None]
    databases = [each.databases for each in given if each.databases]
    return Needs(
        product=product,
        words=frozenset(word for each in given for word in each.offers),
        crates=crates[-1] if crates else Crates.NONE,
        flags=tuple(flag for each in given for flag in each.flags),
        settings=tuple(setting for each in given for setting in each.settings),
        optional=frozenset(each.optional for each in given if each.optional is not None),
        databases=databases[-1] if databases else (),
        notes=tuple(each.note for each in given if each.note is not None),
    )


def _eras(files: Files) -> tuple[str, Eras]:
    def has(path: str) -> bool:
        return files(path) is not None

    product = product_of_source(has)
    known = eras_of(product) if product else None
    if product is None or known is None:
        raise BuildError(
            f"unbuildable: {why_no_source(has) if product is None else product}",
            hint="name a repository of a product that the lab builds: docs/drivers.md",
        )
    return product, known
