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


def lock_text(files: Files) -> str | None:
    """Return the tree's Cargo.lock; None where it has none in the places of one."""
    texts = (files(path) for path in (CARGO_LOCK, "Cargo.lock"))
    return next((text for text in texts if text is not None), None)


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
    traits: AbstractSet[str]

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
        locked = versions_of(self.crate, lock_text(view.files) or "")
        return any(numbers(version) < numbers(self.before) for version in locked)


class Holds(Condition):
    trait: str

    def holds(self, view: View) -> bool:
        return self.trait in view.traits

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({self.trait})


class Fails(Condition):
    without: str

    def holds(self, view: View) -> bool:
        return self.without not in view.traits

    @property
    def traits(self) -> frozenset[str]:
        return frozenset({self.without})


class Either(Condition):
    either: tuple[str, ...]

    def holds(self, view: View) -> bool:
        return not view.traits.isdisjoint(self.either)

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
    """Return which condition is meant, by the key that only this one has."""
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
        earlier: set[str] = set()
        for trait in self.traits:
            names = frozenset[str]().union(*(condition.traits for condition in trait.when))
            placed = {
                condition.place for condition in trait.when if isinstance(condition, Says | Silent)
            }
            unknown = [*sorted(names - earlier), *sorted(placed - self.places.keys())]
            if unknown:
                raise ValueError(f"{trait.id}: no {', '.join(unknown)} above it")
            if trait.id in earlier:
                raise ValueError(f"{trait.id}: a second time")
            earlier.add(trait.id)
        return self

    def of(self, files: Files, left_out: AbstractSet[str] = frozenset()) -> tuple[Trait, ...]:
        """Return the traits of a tree, without the optional parts that are left out."""
        traits: dict[str, Trait] = {}
        for trait in self.traits:
            view = View(files=files, places=self.places, traits=traits.keys())
            if trait.gives.optional not in left_out and all(
                condition.holds(view) for condition in trait.when
            ):
                traits[trait.id] = trait
        return tuple(traits.values())


def versions_of(crate: str, lock: str) -> list[str]:
    """Return the versions in which a Cargo.lock of any format names a crate."""
    return re.findall(rf'^name = "{re.escape(crate)}"\nversion = "([^"]+)"', lock, re.MULTILINE)


def numbers(version: str) -> tuple[int, ...]:
    """0.9.64+1.1.1 -> 0, 9, 64."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[+-]", version)[0]))


HINT = "correct the file; its head says what each key means"


def eras_of(product: str) -> Eras | None:
    """Return those of a product; None when the lab does not know how to build it."""
    path = build_needs_file(product)
    return None if path is None else eras(path)


@cache
def eras(path: Path) -> Eras:
    """Return the data of a file, read once; FileProblemsError says what is wrong in it."""
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
    """Return whose source it is; BuildError for one that the lab cannot build."""
    return _eras(files)[0]


def needs_of(files: Files, left_out: AbstractSet[str] = frozenset()) -> Needs:
    """Look into a tree; BuildError if the lab cannot build such a source.

    ``left_out`` names optional parts that it is to be built without.
    """
    files = cache(files)
    product, eras = _eras(files)
    gifts = [trait.gives for trait in eras.of(files, left_out)]
    crates = [gift.crates for gift in gifts if gift.crates is not None]
    databases = [gift.databases for gift in gifts if gift.databases]
    return Needs(
        product=product,
        words=frozenset(word for gift in gifts for word in gift.offers),
        crates=crates[-1] if crates else Crates.NONE,
        flags=tuple(flag for gift in gifts for flag in gift.flags),
        settings=tuple(setting for gift in gifts for setting in gift.settings),
        optional=frozenset(gift.optional for gift in gifts if gift.optional is not None),
        databases=databases[-1] if databases else (),
        notes=tuple(gift.note for gift in gifts if gift.note is not None),
    )


def _eras(files: Files) -> tuple[str, Eras]:
    def has(path: str) -> bool:
        return files(path) is not None

    product = product_of_source(has)
    eras = eras_of(product) if product else None
    if product is None or eras is None:
        raise BuildError(
            f"unbuildable: {why_no_source(has) if product is None else product}",
            hint="name a repository of a product that the lab builds: docs/drivers.md",
        )
    return product, eras
