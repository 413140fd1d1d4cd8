"""A product's folder: everything that only one program needs; and which products there are.

The core imports no product. Whoever starts the program says once in which package their folders
are; each is imported when somebody first asks what there is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dsharness.model.workload import WorkloadBase

MAIN = "product.yaml"  # what a product's folder has


@dataclass(frozen=True, kw_only=True)
class ProductFolder:
    """What one program adds to the lab; its data are YAML files next to its code."""

    id: str
    package: str  # where its code is, and next to it its data
    # By the name that a row gives, and by the tool that a workload names: the place of the driver's
    # class in the package, `module.Class`. It is imported when it is asked for.
    systems: Mapping[str, str]
    loads: Mapping[str, str] = field(default_factory=dict)
    workloads: tuple[type[WorkloadBase], ...] = ()
    # The system of a row that names none; one product has it.
    main_system: str = ""
    # What layers above take of it -> the module of the package that has it, in capitals: a `suite`
    # of a validation, `experiments` with claims, `edits` of its source.
    parts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def folder(self) -> Path:
        return Path(*importlib.import_module(self.package).__path__)

    def drivers(self, places: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
        """Return how to make the driver at each of these places."""
        return {name: partial(self._driver, place) for name, place in places.items()}

    def _driver(self, place: str) -> object:
        module, _, name = place.rpartition(".")
        return getattr(importlib.import_module(f".{module}", self.package), name)()

    def part(self, name: str) -> object:
        """Import such a part now; None where the product has none."""
        if name not in self.parts:
            return None
        module = importlib.import_module(f".{self.parts[name]}", self.package)
        part: object = getattr(module, name.upper())
        return part


_packages: list[str] = []


def assemble(package: str) -> None:
    """Take the products of a package, each of which is a package in it, as ``PRODUCT``."""
    if package not in _packages:
        _packages.append(package)
        product_folders.cache_clear()


@cache
def product_folders() -> Mapping[str, ProductFolder]:
    """All products, by id; RuntimeError where nobody said where they are."""
    if not _packages:
        raise RuntimeError("no product is there: call `dsproducts.assemble()` first")
    modules = (
        importlib.import_module(f"{package}.{found.name}")
        for package in _packages
        for found in pkgutil.iter_modules(importlib.import_module(package).__path__)
        if found.ispkg
    )
    folders = [module.PRODUCT for module in modules if hasattr(module, "PRODUCT")]
    return {folder.id: folder for folder in sorted(folders, key=lambda folder: folder.id)}


def main_system() -> str:
    """Return the system of a row that names none."""
    (system,) = filter(None, (folder.main_system for folder in product_folders().values()))
    return system


def parts_of_products(name: str) -> list[object]:
    """Import such parts of all products that have one, in the products' order."""
    return [folder.part(name) for folder in product_folders().values() if name in folder.parts]


T = TypeVar("T")


class OfProducts(Mapping[str, T]):
    """What products add of one kind, by name; each is made when somebody first asks for it."""

    def __init__(
        self, take: Callable[[ProductFolder], Mapping[str, Callable[[], T]]], **own: T
    ) -> None:
        self._take, self._own = take, own
        self._made = dict[str, T]()

    @cached_property
    def _all(self) -> Mapping[str, Callable[[], T]]:
        makers: dict[str, Callable[[], T]] = {
            name: partial(self._own.__getitem__, name) for name in self._own
        }
        for folder in product_folders().values():
            makers |= self._take(folder)
        return makers

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            self._made[name] = self._all[name]()
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in self._all

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
