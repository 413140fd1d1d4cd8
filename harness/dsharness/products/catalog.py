"""The products there are, each read once from its folder, and what one says of a row.

A row's product says how its packages are called, and what the row states of their versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from dsharness.errors import MatrixError
from dsharness.model import (
    AptPackages,
    DnfPackages,
    Family,
    Image,
    KojiPackages,
    Row,
    SystemName,
    Value,
)
from dsharness.product_folder import MAIN, product_folders
from dsharness.products.product import KnownChanges, Product, ProductPackages, SourceFacts, first_of
from dsharness.products.seen_builds import SeenBuilds, SeenSpan
from dsharness.yaml_files.problems import suggestion
from dsharness.yaml_files.shape import read_checked

V = TypeVar("V", bound=Value)
HINT = "correct the file; docs/drivers.md says what each key means"


@cache
def folders_in(folder: Path | None = None) -> Mapping[str, Path]:
    """Where the data of each product are, by its id: of all that there are, or below a folder."""
    if folder is None:
        return {name: product.folder for name, product in product_folders().items()}
    return {path.parent.name: path.parent for path in sorted(folder.glob(f"*/{MAIN}"))}


def product_ids(folder: Path | None = None) -> tuple[str, ...]:
    return tuple(folders_in(folder))


@cache
def product(name: str, folder: Path | None = None) -> Product:
    """The product of that id; MatrixError when there is none, or its data is wrong."""
    known_ids = product_ids(folder)
    if name not in known_ids:
        raise MatrixError(
            f"no product {name!r}.{suggestion(name, known_ids)}",
            hint=f"there are: {', '.join(known_ids)}",
        )
    return read_checked(folders_in(folder)[name] / MAIN, Product, hint=HINT)


@cache
def product_of_system(system: str, folder: Path | None = None) -> str:
    """The id of the product that a driver serves."""
    for name in product_ids(folder):
        if system in product(name, folder).systems:
            return name
    raise MatrixError(
        f"no product is served by system {system!r}",
        hint=f"name it under `systems` in a {MAIN}",
    )


def product_of(row: Row) -> str:
    """The id of a row's product."""
    return product_of_system(row.system)


@cache
def source_facts(name: str, folder: Path | None = None) -> SourceFacts | None:
    """What is known of its source; None when the lab does not build it."""
    return product_file(name, "source.yaml", SourceFacts, folder)


def product_of_source(has: Callable[[str], bool], folder: Path | None = None) -> str | None:
    """The id of the product whose source this is, by the files that it has."""
    for name in product_ids(folder):
        facts = source_facts(name, folder)
        if facts is not None and all(has(path) for path in facts.must_have):
            return name
    return None


def source_system(name: str, folder: Path | None = None) -> SystemName:
    """The driver that serves what was built from a product's source tree."""
    system = product(name, folder).source_system
    if system is None:
        raise MatrixError(
            f"nothing serves {product(name, folder).title} from a source tree",
            hint=f"name a driver as `source_system` in its {MAIN}: docs/drivers.md",
        )
    return system


def why_no_source(has: Callable[[str], bool], folder: Path | None = None) -> str:
    """What each product's source would have that this one lacks."""
    reasons = []
    for name in product_ids(folder):
        facts = source_facts(name, folder)
        lacking = [path for path in facts.must_have if not has(path)] if facts else []
        if lacking:
            reasons.append(f"not a source of {product(name, folder).title}: it lacks {lacking[0]}")
    return "; ".join(reasons)


@cache
def known_changes(name: str, folder: Path | None = None) -> KnownChanges:
    """What is known to have changed its cost; nothing, where nothing is."""
    return product_file(name, "known_changes.yaml", KnownChanges, folder) or KnownChanges()


@cache
def seen_builds(name: str, folder: Path | None = None) -> SeenBuilds:
    """Which toolchains its versions were seen to build in; nothing, where none was tried."""
    return product_file(name, "seen_builds.yaml", SeenBuilds, folder) or SeenBuilds()


def version_of_source(name: str, files: Callable[[str], str | None]) -> str | None:
    """The version that a tree of the product says it has; None where it says none."""
    facts = source_facts(name)
    if facts is None or facts.spec is None:
        return None
    return facts.spec.version_in(files(facts.spec.version_file) or "")


def seen_of_source(name: str, files: Callable[[str], str | None]) -> SeenSpan | None:
    """What was seen of trees of its version; None where nothing was."""
    version = version_of_source(name, files)
    if version is None:
        return None
    return seen_builds(name).at(version, product(name).releases.branch_of)


def build_needs_file(name: str, folder: Path | None = None) -> Path | None:
    """The file with what its trees need to be built; dsbuilds reads it."""
    return file_of_product(name, "build_needs.yaml", folder)


def release_files(folder: Path | None = None) -> dict[str, Path]:
    """The products whose tagged releases are known, and the table of each."""
    paths = {name: path / "releases.csv" for name, path in folders_in(folder).items()}
    return {name: path for name, path in paths.items() if path.exists()}


def notable_versions(image: Image) -> dict[str, str]:
    """What decides how fast an image's product is: its version, and those of its libraries.

    Nothing where no product is served.
    """
    if image.product is None:
        return {}
    facts = product(image.product)
    names = {image.product: facts.servers, **facts.libraries}
    versions = {noun: first_of(packages, image.packages) for noun, packages in names.items()}
    return {noun: version for noun, version in versions.items() if version is not None}


def product_file(name: str, file: str, model: type[V], folder: Path | None = None) -> V | None:
    """Read a file of a product; None where it has none."""
    path = file_of_product(name, file, folder)
    return None if path is None else read_checked(path, model, hint=HINT)


def file_of_product(name: str, file: str, folder: Path | None = None) -> Path | None:
    """Where a file of a product is; None where it has none."""
    path = folders_in(folder)[name] / file
    return path if path.exists() else None


UNKNOWN = "as offered"


def known_of(row: Row) -> Product:
    return product(product_of(row))


def version_of(row: Row) -> str | None:
    """The product's version, as the row states it."""
    return row.versions.get(product_of(row))


def titled(row: Row) -> str:
    """Its product with its version, as in `BIND 9.20`."""
    return f"{known_of(row).title} {version_of(row) or UNKNOWN}"


def suites_of(row: Row) -> dict[str, str]:
    """What brings the product along, as the row states it: title -> version."""
    return _titled_suites(row, row.versions)


def published_suites(row: Row) -> dict[str, str]:
    """The same, as published, where the product is measured alone."""
    return _titled_suites(row, row.published.versions if row.published else {})


def packages_of(row: Row) -> ProductPackages:
    """The product's packages, as the row's packages are called."""
    facts = known_of(row)
    packages = facts.deb if row.family is Family.APT else facts.rpm
    if packages is None:
        kind = "deb" if row.family is Family.APT else "rpm"
        raise MatrixError(
            f"{row.id}: how {facts.title} is packaged as {kind} is not known",
            hint=f"say it in product.yaml of {product_of(row)}: docs/drivers.md",
        )
    return packages


def installs(row: Row) -> tuple[str, ...]:
    """The packages that are installed by name."""
    if row.packages.install is not None:
        return row.packages.install
    offered = isinstance(row.packages, AptPackages | DnfPackages)
    return (packages_of(row).server,) if offered else ()


def koji_rpms(row: Row, packages: KojiPackages) -> tuple[str, ...]:
    """What is taken of a build in Koji."""
    return packages_of(row).all if packages.rpms is None else packages.rpms


def stated_versions(row: Row) -> dict[str, tuple[tuple[str, ...], str]]:
    """Product or suite -> its packages' names, and the version that the row states."""
    facts = known_of(row)
    names: dict[str, tuple[str, ...]] = {product_of(row): (packages_of(row).server,)}
    names |= {name: suite.packages for name, suite in facts.suites.items() if suite.packages}
    return {name: (names[name], row.versions[name]) for name in names if name in row.versions}


def _titled_suites(row: Row, versions: Mapping[str, str]) -> dict[str, str]:
    suites = known_of(row).suites
    return {suite.title: versions[name] for name, suite in suites.items() if name in versions}
