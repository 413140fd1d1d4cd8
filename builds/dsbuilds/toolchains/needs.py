"""What a tree needs to be built, read from the tree itself and never from its version."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dsbuilds.toolchains.traits import Crates, Eras, Files
from dsharness.errors import BuildError
from dsharness.products import build_needs_file, product_of_source, why_no_source
from dsharness.yaml_files.shape import read_checked

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
            hint="name a repository of a product that the lab builds: docs/products.md",
        )
    return product, known
