"""The packages of a trial by name: which file, which version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dsbisect.validate.trial import Trial
from dsbuilds.drivers.package_build import index_of, repository_of
from dsharness.products.row_facts import packages_of


@dataclass(frozen=True, kw_only=True)
class Package:
    """One file of a repository."""

    name: str
    version: str
    file: str


def packages_in(repository: Path) -> tuple[Package, ...]:
    return tuple(Package(name=n, version=v, file=f) for n, v, f in index_of(repository))


def server_of(trial: Trial) -> Package:
    """The package whose version is the product's; an image has been made with it."""
    name = packages_of(trial.row).server
    return next(each for each in packages_in(repository_of(trial.build)) if each.name == name)


def also_in_stock(trial: Trial) -> tuple[Package, ...]:
    """Of what was built, that which the stock image has too."""
    made = packages_in(repository_of(trial.build))
    return tuple(each for each in made if each.name in trial.stock.packages)
