"""Workloads, settings and the whole of matrix.yaml."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic.json_schema import SkipJsonSchema

from dsharness.model.built import Toolchain
from dsharness.model.rows import Row, Series
from dsharness.model.value import Identifier, Value


class UserOrder(StrEnum):
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
    order: UserOrder = UserOrder.RANDOM
    warmup_s: PositiveInt = Field(
        default=1, description="seconds before a server's first run, which also tell its speed"
    )
    duration_s: PositiveFloat = Field(
        default=2.0, description="seconds that a run should last; it has as many operations"
    )
    operations: PositiveInt = Field(default=200, description="the fewest operations of a run ...")
    most_s: PositiveFloat = Field(
        default=4.0, description="... unless they take longer than so many seconds"
    )


class Settings(Value):
    """One set of server settings, e.g. another password scheme without a rebuild."""

    id: Identifier
    title: str = ""
    password_scheme: str | None = None


class Tools(Value):
    """Where the tools come from that are the same for every version."""

    ldclt: Identifier = Field(description="the row whose load generator drives every server")
    cargo: Identifier | None = Field(
        default=None,
        description="the toolchain that fetches crates for all; default: each its own",
    )


class Defaults(Value):
    """What `reproduce` does when nothing is named."""

    series: Identifier
    workloads: tuple[Identifier, ...] = Field(min_length=1)
    settings: Identifier = "default"


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

    def row(self, row_id: str) -> Row:
        return next(row for row in self.rows if row.id == row_id)
