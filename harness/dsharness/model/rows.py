"""Rows: one pinned system each, and the series they stand in."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from dsharness.model.built import BuildSpec
from dsharness.model.of_products import AnySystem
from dsharness.model.value import (
    AptSource,
    Identifier,
    ImageDigest,
    ImageName,
    ModuleStream,
    Nvr,
    PackageName,
    SuiteName,
    Url,
    Value,
    Version,
)
from dsharness.product_folder import main_system


class Family(StrEnum):
    """Which template makes the image."""

    APT = "apt"  # Debian, Astra
    DNF = "dnf"  # Fedora
    EL8 = "el8"  # AlmaLinux, Rocky: module streams
    FREEIPA = "freeipa"  # FreeIPA's own server image, systemd inside


# Which driver makes and serves it.
SystemName = Annotated[str, AnySystem()]


class Os(Value):
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Bootstrap(Value):
    """A base image made from packages, with no registry."""

    kind: Literal["bootstrap"] = "bootstrap"
    tool: Literal["mmdebstrap", "dnf"]
    suite: SuiteName = Field(description="Debian suite, or Fedora/EL release version for dnf")
    mirror: Url | None = Field(default=None, description="overrides the tool's own mirror")
    repositories: dict[PackageName, Url] = Field(
        default_factory=dict, description="dnf only: repository id -> base URL"
    )
    keys: tuple[Url, ...] = Field(
        default=(),
        description="dnf only: URLs of the keys that sign its packages; default: the release's own "
        "of distribution-gpg-keys, where that is installed",
    )
    unsigned: bool = Field(
        default=False, description="dnf only: the packages carry no signature, and that is accepted"
    )
    plain_http: bool = Field(
        default=False, description="dnf only: repositories may be reached without encryption"
    )
    include: tuple[PackageName, ...] = Field(
        default=(), description="packages the base starts with, instead of the lab's short list"
    )


class Registry(Value):
    """A base image pulled from a registry; its digest is pinned in matrix.lock."""

    kind: Literal["registry"] = "registry"
    image: ImageName
    digest: ImageDigest | None = None


Base = Annotated[Bootstrap | Registry, Field(discriminator="kind")]


INSTALL = "packages to install by name; default: the server of the row's product"


class AptPackages(Value):
    """From the distribution's apt archive, or the sources named."""

    kind: Literal["apt"] = "apt"
    sources: tuple[AptSource, ...] = Field(
        default=(), description="extra one-line apt sources, e.g. ALD Pro's frozen archive"
    )
    install: tuple[PackageName, ...] | None = Field(default=None, description=INSTALL)


class DnfPackages(Value):
    """From the distribution's dnf repositories, or archives and vaults by base URL."""

    kind: Literal["dnf"] = "dnf"
    repositories: dict[PackageName, Url] = Field(default_factory=dict)
    unsigned: bool = Field(
        default=False, description="the repositories' packages carry no signature; accepted"
    )
    plain_http: bool = Field(
        default=False, description="repositories may be reached without encryption"
    )
    modules: tuple[ModuleStream, ...] = Field(
        default=(), description="module streams, e.g. NAME:STREAM"
    )
    install: tuple[PackageName, ...] | None = Field(default=None, description=INSTALL)


class KojiPackages(Value):
    """One build from Koji by its NVR, the rest from the repositories.

    Koji signs no RPM, so https vouches for the build itself.
    """

    kind: Literal["koji"] = "koji"
    nvr: Nvr
    rpms: tuple[PackageName, ...] | None = Field(
        default=None, description="of that build; default: those of the row's product"
    )
    url: Url = "https://kojipkgs.fedoraproject.org/packages"
    repositories: dict[PackageName, Url] = Field(default_factory=dict)
    unsigned: bool = Field(
        default=False, description="the repositories' packages carry no signature; accepted"
    )
    plain_http: bool = Field(
        default=False, description="repositories may be reached without encryption"
    )
    install: tuple[PackageName, ...] | None = Field(default=None, description=INSTALL)


class PreinstalledPackages(Value):
    """Everything is in the registry image already (FreeIPA's server images)."""

    kind: Literal["preinstalled"] = "preinstalled"
    install: tuple[PackageName, ...] | None = Field(default=None, description=INSTALL)


Packages = Annotated[
    AptPackages | DnfPackages | KojiPackages | PreinstalledPackages, Field(discriminator="kind")
]


class Published(Value):
    verdict: Literal["fast", "slow"]
    source: str = Field(description="id of an entry of `sources`")
    operation: str = Field(default="bind", description="what was measured")
    versions: dict[Identifier, Version] = Field(
        default_factory=dict,
        description="of what it was published as part of, where only the product is measured here",
    )
    note: str = ""


class Row(Value):
    """One pinned system of the matrix."""

    id: Identifier
    os: Os
    family: Family
    base: Base
    packages: Packages
    versions: dict[Identifier, Version] = Field(
        default_factory=dict,
        description="product, or what it is part of -> upstream version, as published; left out "
        "where only a first pull can tell (matrix.lock keeps it)",
    )
    pins: dict[PackageName, Version] = Field(
        default_factory=dict, description="further packages that must have this version"
    )
    build: BuildSpec | None = Field(
        default=None, description="built from source and installed over the packages"
    )
    system: SystemName = Field(default_factory=main_system)
    published: Published | None = None
    note: str = ""


class Series(Value):
    """Rows in an order one can search along: a list, or parents for a DAG of branches."""

    id: Identifier
    title: str
    rows: tuple[Identifier, ...] = ()
    parents: dict[Identifier, tuple[Identifier, ...]] = Field(default_factory=dict)
