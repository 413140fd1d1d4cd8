"""What a row's product says of its packages and versions."""

from __future__ import annotations

from collections.abc import Mapping

from dsharness.errors import MatrixError
from dsharness.model import AptPackages, DnfPackages, Family, KojiPackages, Row
from dsharness.products.catalog import product, product_of
from dsharness.products.product import Product, ProductPackages

UNKNOWN = "as offered"


def known_of(row: Row) -> Product:
    return product(product_of(row))


def version_of(row: Row) -> str | None:
    """The product's version, as the row states it."""
    return row.versions.get(product_of(row))


def titled(row: Row) -> str:
    """`389-ds 2.0.17`."""
    return f"{known_of(row).title} {version_of(row) or UNKNOWN}"


def suites_of(row: Row) -> dict[str, str]:
    """What brings the product along, as the row states it: title -> version."""
    return _titled_suites(row, row.versions)


def published_suites(row: Row) -> dict[str, str]:
    """The same, as published, where the product is measured alone."""
    return _titled_suites(row, row.published.versions if row.published else {})


def packages_of(row: Row) -> ProductPackages:
    """The product's packages, as the row's packages are called."""
    known = known_of(row)
    found = known.deb if row.family is Family.APT else known.rpm
    if found is None:
        kind = "deb" if row.family is Family.APT else "rpm"
        raise MatrixError(
            f"{row.id}: how {known.title} is packaged as {kind} is not known",
            hint=f"say it in product.yaml of {product_of(row)}: docs/products.md",
        )
    return found


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
    known = known_of(row)
    names: dict[str, tuple[str, ...]] = {product_of(row): (packages_of(row).server,)}
    names |= {name: suite.packages for name, suite in known.suites.items() if suite.packages}
    return {name: (names[name], row.versions[name]) for name in names if name in row.versions}


def _titled_suites(row: Row, versions: Mapping[str, str]) -> dict[str, str]:
    suites = known_of(row).suites
    return {suite.title: versions[name] for name, suite in suites.items() if name in versions}
