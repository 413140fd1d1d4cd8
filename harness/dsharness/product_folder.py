"""A product's folder: everything that only one program needs; and which products there are.

The core imports no product. Whoever starts the program says once in which package their folders
are; each is imported when somebody first asks what there is.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from dsharness.loads.load_driver import Load
    from dsharness.model.workload import WorkloadBase
    from dsharness.systems.system import System

MAIN = "product.yaml"  # what a product's folder has


@dataclass(frozen=True, kw_only=True)
class ProductFolder:
    """What one program adds to the lab; its data are YAML files next to its code."""

    id: str
    package: str  # where its code is, and next to it its data
    systems: Mapping[str, System]  # by the name that a row gives
    loads: Mapping[str, Load] = field(default_factory=dict)  # by the tool that a workload names
    workloads: tuple[type[WorkloadBase], ...] = ()
    # What layers above take of it -> the module of the package that has it, in capitals: a `suite`
    # of a validation, `experiments` with claims, `edits` of its source.
    parts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def folder(self) -> Path:
        return Path(*importlib.import_module(self.package).__path__)

    def part(self, name: str) -> object:
        """Import such a part now; None where the product has none."""
        if name not in self.parts:
            return None
        module = importlib.import_module(f"{self.package}.{self.parts[name]}")
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


T = TypeVar("T")


class OfProducts(Mapping[str, T]):
    """What products add of one kind, by name; gathered when somebody first asks."""

    def __init__(self, take: Callable[[ProductFolder], Mapping[str, T]], **own: T) -> None:
        self._take, self._own = take, own

    @cached_property
    def _all(self) -> Mapping[str, T]:
        added = dict[str, T]()
        for folder in product_folders().values():
            added |= self._take(folder)
        return self._own | added

    def __getitem__(self, name: str) -> T:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)
