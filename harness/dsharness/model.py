"""The vocabulary: what matrix.yaml may say, and what a measurement leaves behind.

Read with docs/architecture.md. Everything here is a frozen value without behaviour beyond
checking itself; files, containers and clocks live elsewhere.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt
from pydantic.json_schema import SkipJsonSchema

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
Version = Annotated[str, Field(pattern=r"^[0-9][0-9A-Za-z.~+:_-]*$", max_length=64)]


class Value(BaseModel):
    """Frozen, strict about unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Family(StrEnum):
    """Which template makes the image."""

    APT = "apt"  # Debian, Astra
    DNF = "dnf"  # Fedora
    EL8 = "el8"  # AlmaLinux, Rocky: module streams
    FREEIPA = "freeipa"  # FreeIPA's own server image, systemd inside


class Outcome(StrEnum):
    """An infrastructure failure is never FAST or SLOW."""

    FAST = "fast"
    SLOW = "slow"
    INCONCLUSIVE = "inconclusive"


class Server(StrEnum):
    """Which driver makes and serves the directory."""

    DIRSRV = "dirsrv"
    FREEIPA = "freeipa"
    ALDPRO = "aldpro"


class Os(Value):
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Bootstrap(Value):
    """A base image made from packages, with no registry."""

    kind: Literal["bootstrap"] = "bootstrap"
    tool: Literal["mmdebstrap", "dnf"]
    suite: str = Field(description="Debian suite, or Fedora/EL release version for dnf")
    mirror: str | None = Field(default=None, description="overrides the tool's own mirror")
    repositories: dict[str, str] = Field(
        default_factory=dict, description="dnf only: repository id -> base URL"
    )
    include: tuple[str, ...] = Field(
        default=(), description="packages the base starts with, instead of the lab's short list"
    )


class Registry(Value):
    """A base image pulled from a registry; its digest is pinned in matrix.lock."""

    kind: Literal["registry"] = "registry"
    image: str
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = None


Base = Annotated[Bootstrap | Registry, Field(discriminator="kind")]


class AptPackages(Value):
    """From the distribution's apt archive, or the sources named."""

    kind: Literal["apt"] = "apt"
    sources: tuple[str, ...] = Field(
        default=(), description="extra one-line apt sources, e.g. ALD Pro's frozen archive"
    )
    install: tuple[str, ...] = Field(default=("389-ds-base",))


class DnfPackages(Value):
    """From the distribution's dnf repositories, or archives and vaults by base URL."""

    kind: Literal["dnf"] = "dnf"
    repositories: dict[str, str] = Field(default_factory=dict)
    modules: tuple[str, ...] = Field(default=(), description="module streams, e.g. 389-ds:1.4")
    install: tuple[str, ...] = Field(default=("389-ds-base",))


class KojiPackages(Value):
    """One build from Koji by its NVR, the rest from the repositories."""

    kind: Literal["koji"] = "koji"
    nvr: Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]+-[^-]+-[^-]+$")]
    rpms: tuple[str, ...] = ("389-ds-base", "389-ds-base-libs", "python3-lib389")
    url: str = "https://kojipkgs.fedoraproject.org/packages"
    repositories: dict[str, str] = Field(default_factory=dict)
    install: tuple[str, ...] = ()


class PreinstalledPackages(Value):
    """Everything is in the registry image already (FreeIPA's server images)."""

    kind: Literal["preinstalled"] = "preinstalled"
    install: tuple[str, ...] = ()


Packages = Annotated[
    AptPackages | DnfPackages | KojiPackages | PreinstalledPackages, Field(discriminator="kind")
]


class Versions(Value):
    """Upstream versions, as published; the package's release suffix belongs in matrix.lock."""

    dirsrv: Version | None = Field(
        default=None, description="omitted when only a first pull can tell; matrix.lock keeps it"
    )
    freeipa: Version | None = None
    aldpro: Version | None = None


class Published(Value):
    verdict: Literal["fast", "slow"]
    source: str = Field(description="id of an entry of `sources`")
    freeipa: Version | None = Field(
        default=None, description="FreeIPA as published, where only its directory is measured here"
    )
    note: str = ""


class Row(Value):
    """One pinned system of the matrix."""

    id: Identifier
    os: Os
    family: Family
    base: Base
    packages: Packages
    versions: Versions
    pins: dict[str, Version] = Field(
        default_factory=dict, description="further packages that must have this version"
    )
    server: Server = Server.DIRSRV
    published: Published | None = None
    note: str = ""


class Series(Value):
    """Rows in an order one can search along: a list, or parents for a DAG of branches."""

    id: Identifier
    title: str
    rows: tuple[Identifier, ...] = ()
    parents: dict[Identifier, tuple[Identifier, ...]] = Field(default_factory=dict)


class Order(StrEnum):
    """How a load walks over its users."""

    RANDOM = "random"  # all distinct users, at random
    REPEAT = "repeat"  # one user again and again


class Workload(Value):
    """A fixed load; every parameter is pinned, none is left to the tool's default."""

    id: Identifier
    title: str
    operation: Literal["bind"] = "bind"
    tool: Literal["ldclt"] = "ldclt"
    threads: PositiveInt = 4
    users: PositiveInt = Field(default=1000, description="users seeded into the directory")
    distinct_users: PositiveInt = Field(default=1000, description="users the load binds as")
    order: Order = Order.RANDOM
    warmup_s: PositiveInt = Field(default=1, description="seconds dropped at the start")
    duration_s: PositiveInt = Field(default=3, description="seconds counted after the warm-up")


class Arm(Value):
    """One set of server settings, e.g. another password scheme without a rebuild."""

    id: Identifier
    title: str = ""
    password_scheme: str | None = None


class Tools(Value):
    """The rows whose images provide the pinned load generators."""

    ldclt: Identifier


class Defaults(Value):
    """What `reproduce` does when nothing is named."""

    series: Identifier
    workloads: tuple[Identifier, ...] = Field(min_length=1)
    arm: Identifier = "default"


class Source(Value):
    id: Identifier
    title: str
    url: str = ""


class Matrix(Value):
    """The whole of matrix.yaml, checked."""

    version: Literal[1]
    file: SkipJsonSchema[Path | None] = Field(
        default=None, exclude=True, description="where it was read from; set by the loader"
    )
    defaults: Defaults
    tools: Tools
    sources: tuple[Source, ...] = ()
    rows: tuple[Row, ...] = Field(min_length=1)
    series: tuple[Series, ...] = Field(min_length=1)
    workloads: tuple[Workload, ...] = Field(min_length=1)
    settings: tuple[Arm, ...] = Field(min_length=1)

    def row(self, row_id: str) -> Row:
        return next(row for row in self.rows if row.id == row_id)


class Image(Value):
    """A built container image, named by the content of what went into it."""

    row_id: str
    reference: str
    key: str
    packages: dict[str, str] = Field(
        default_factory=dict, description="manifest: every installed package and its version"
    )

    @property
    def notable(self) -> dict[str, str]:
        """The versions that decide how fast a hash is computed."""
        return {
            noun: version
            for noun, names in NOTABLE_PACKAGES.items()
            for name, version in [
                next(((n, self.packages[n]) for n in names if n in self.packages), ("", ""))
            ]
            if version
        }


NOTABLE_PACKAGES: dict[str, tuple[str, ...]] = {
    "389-ds": ("389-ds-base",),
    "nss": ("libnss3", "nss-softokn", "nss"),
    "openssl": ("libssl3t64", "libssl3", "libssl1.1", "openssl-libs"),
    "libldap": ("libldap2", "libldap-2.5-0", "libldap-2.4-2", "openldap"),
    "glibc": ("libc6", "glibc"),
}


class StoredPassword(Value):
    """What the running server really stores, read back and not assumed."""

    scheme: str
    rounds: int | None = None


class Sample(Value):
    """One measured run. ``invalid`` lists why it may not be used; empty means valid."""

    id: str
    campaign_id: str
    row_id: str
    arm_id: str
    workload_id: str
    image_key: str
    started_at: str = Field(description="UTC, ISO 8601")
    duration_s: float
    operations: int
    rate_per_s: float
    server_cpu_us_per_op: float | None
    client_cpu_us_per_op: float | None
    calibrator_us: float | None = Field(description="CPU time of one fixed piece of work")
    steal_pct: float
    errors: int
    per_second: tuple[float, ...]
    invalid: tuple[str, ...] = ()
    stored: StoredPassword | None = None
    workload: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Any] = Field(default_factory=dict)
    log: str = ""

    @property
    def valid(self) -> bool:
        return not self.invalid

    @property
    def calibrated_cost(self) -> float | None:
        """Server CPU per operation in units of the calibrator: the machine's speed cancels."""
        if self.server_cpu_us_per_op is None or not self.calibrator_us:
            return None
        return self.server_cpu_us_per_op / self.calibrator_us


class Verdict(Value):
    """What one candidate turned out to be, with its evidence."""

    candidate: str
    outcome: Outcome
    why: str
    ratio_to_first: float | None = Field(
        default=None, description="cost over the cost of the first end; above 1 is slower"
    )
    interval: tuple[float, float] | None = None
    samples: tuple[str, ...] = Field(default=(), description="sample ids")


class Step(Value):
    """A difference between two neighbours in a line."""

    before: str
    after: str
    ratio: float
    interval: tuple[float, float]


class Boundary(Value):
    """The answer for one line of a series and one workload."""

    series_id: str
    line: tuple[str, ...] = Field(default=(), description="the candidates, in order")
    workload_id: str
    arm_id: str
    before: str | None = Field(description="the last candidate that is like the line's first")
    after: str | None = Field(description="the first candidate that is like the line's last")
    suspects: tuple[str, ...] = Field(
        default=(),
        description="all that may be the first changed one: `after`, and before it what could not "
        "be measured",
    )
    found: bool
    direction: Literal["slower", "faster", "none", "unknown"]
    effect: float | None = None
    effect_interval: tuple[float, float] | None = None
    smallest_visible_pct: float | None = None
    summary: str
    unmeasured: dict[str, str] = Field(default_factory=dict, description="candidate -> why")
    steps: tuple[Step, ...] = Field(
        default=(), description="every difference between neighbours, the boundary's among them"
    )
    verdicts: tuple[Verdict, ...] = ()


class Campaign(Value):
    """One search: what was asked, and in the end what was answered."""

    id: str
    kind: Literal["rows", "measure"] = "rows"
    series_id: str
    workload_id: str
    arm_id: str
    started_at: str
    finished_at: str | None = None
    boundary: Boundary | None = None
    environment: dict[str, Any] = Field(default_factory=dict)
