"""Settings, tools and the whole of matrix.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from dsharness.model.built import Toolchain
from dsharness.model.rows import Row, Series
from dsharness.model.value import Identifier, Value
from dsharness.model.workload import Workload

DATABASE = "database"  # an option: the library that a directory keeps its data in
OWN = "own"  # its value where each version is to keep the library that it prefers


class Settings(Value):
    """One set of server settings, e.g. another password scheme without a rebuild."""

    id: Identifier
    title: str = ""
    options: dict[Identifier, str] = Field(
        default_factory=dict, description="e.g. password-scheme: SSHA512; its system knows which"
    )


CrateRegistry = Annotated[
    str,
    Field(pattern=r"^(sparse|registry)\+https?://[A-Za-z0-9.-]+(:\d{1,5})?(/[A-Za-z0-9._~/-]*)?$"),
]


class SecondTool(Value):
    """A load tool of others that `--profile` asks the same operations by."""

    toolchain: Identifier = Field(description="what runs it, on the row of the lab's own tool")
    url: str = Field(pattern=r"^https://\S+$", description="its only file")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Tools(Value):
    """Where the tools come from that are the same for every version."""

    loads: dict[Identifier, Identifier] = Field(
        description="load tool -> the row whose image has it; that one drives every server"
    )
    cargo: Identifier | None = Field(
        default=None, description="the toolchain that fetches crates for all; default: each its own"
    )
    crates: tuple[CrateRegistry, ...] = Field(
        default=(),
        description="registries other than crates.io from which a Cargo.lock may take crates, "
        "as it has them: sparse+https://… or registry+https://…",
    )
    programs: Identifier | None = Field(
        default=None, description="the toolchain whose rustc compiles the lab's own loads"
    )
    checks: Identifier | None = Field(
        default=None,
        description="the toolchain whose tools look at packages: lintian, abidiff and more",
    )
    balancer: Identifier | None = Field(
        default=None,
        description="the toolchain whose haproxy checks a server in `reproduce --claims`",
    )
    second: SecondTool | None = Field(
        default=None, description="UnboundID's LDAP SDK; default: no second tool is asked"
    )


class Profile(Value):
    """The workloads that a package must pass: what its users do."""

    id: Identifier
    title: str = ""
    workloads: tuple[Identifier, ...] = Field(min_length=1, description="of one load tool")


class Defaults(Value):
    """What `reproduce` and `validate` do when nothing is named."""

    series: Identifier
    workloads: tuple[Identifier, ...] = Field(min_length=1)
    settings: Identifier = "default"
    profile: Identifier | None = Field(
        default=None, description="of `validate`; default: the workloads"
    )
    suite: dict[Identifier, tuple[Identifier, ...]] = Field(
        default_factory=dict,
        description="what `compare` measures: workload -> metrics that it is judged by; the first "
        "one decides how long it runs. Default: the workloads, by their CPU time",
    )


class PublishedSource(Value):
    id: Identifier
    title: str
    url: str = ""


class Matrix(Value):
    """The whole of matrix.yaml, checked."""

    version: Literal[1]
    file: SkipJsonSchema[Path | None] = Field(
        default=None, exclude=True, description="where it was read from; set by the loader"
    )
    products: tuple[Identifier, ...] = Field(
        default=(), description="whose own rows, series, workloads and settings are read with it"
    )
    defaults: Defaults
    tools: Tools
    sources: tuple[PublishedSource, ...] = ()
    toolchains: tuple[Toolchain, ...] = Field(
        default=(), description="in order of preference, for what is built from source"
    )
    rows: tuple[Row, ...] = Field(min_length=1)
    series: tuple[Series, ...] = Field(min_length=1)
    workloads: tuple[Workload, ...] = Field(min_length=1)
    settings: tuple[Settings, ...] = Field(min_length=1)
    profiles: tuple[Profile, ...] = ()

    def row(self, row_id: str) -> Row:
        return next(row for row in self.rows if row.id == row_id)
