"""The tables as this version of dsbisect knows them, and how values become rows of them.

migrations/ is how a database gets there. A column named like a field holds that field. Every field
without a column of its own lives in ``rest``, so that a new field needs no migration until a query
needs it. ``*_us`` columns are microseconds since 1970 UTC: times as text sort wrongly if they are
written differently. No foreign keys: a sample of an unknown campaign is still a measurement worth
keeping. A value comes back from its row exactly; what cannot is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError
from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    ColumnClause,
    Double,
    Index,
    MetaData,
    Table,
    Text,
    literal_column,
    text,
)

from dsharness.errors import StoreError
from dsharness.model import Value
from dsresults.stored_value import MOST_NAMED, stored

METADATA = MetaData()

CAMPAIGNS = Table(
    "campaigns",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("series_id", Text, nullable=False),
    Column("workload_id", Text, nullable=False),
    Column("settings_id", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("finished_at", Text),
    Column("finished_us", BigInteger),
    Column("boundary", JSON(none_as_null=True)),
    Column("rest", JSON, nullable=False),
    Index("campaigns_by_question", "series_id", "workload_id", "settings_id"),
)

SAMPLES = Table(
    "samples",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("campaign_id", Text, nullable=False),
    Column("candidate_id", Text, nullable=False),
    Column("settings_id", Text, nullable=False),
    Column("workload_id", Text, nullable=False),
    Column("image_key", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("duration_s", Double, nullable=False),
    Column("turn", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False, server_default="1"),
    Column("operations", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("calibrator_us", Double),
    Column("steal_pct", Double, nullable=False),
    Column("invalid", JSON, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("samples_by_campaign", "campaign_id", "started_us"),
    Index("samples_by_row", "candidate_id", "workload_id", "settings_id"),
)

# Written into the statement, so that it is seen to be the condition of an index.
PLANNED: ColumnClause[str] = literal_column("'planned'")
GIVEN_UP: ColumnClause[str] = literal_column("'given up'")


def _of_state(name: str, state: str) -> Index:
    """An index of the few turns that are in that state."""
    only = text(f"state = '{state}'")
    return Index(name, "campaign_id", "number", "attempt", sqlite_where=only, postgresql_where=only)


# Samples of a turn that was given up stay, and are not counted.
TURNS = Table(
    "turns",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("campaign_id", Text, nullable=False),
    Column("number", BigInteger, nullable=False),
    Column("attempt", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("turns_by_campaign", "campaign_id", "number", "attempt"),
    _of_state("turns_planned", "planned"),
    _of_state("turns_given_up", "given up"),
)

# What rests on several campaigns; which they are is in ``rest``.
FINDINGS = Table(
    "findings",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("found_at", Text, nullable=False),
    Column("found_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("findings_by_kind", "kind", "found_us"),
)

# One image key can have several manifests: an unpinned package moves on between two builds.
IMAGES = Table(
    "images",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("candidate_id", Text, nullable=False),
    Column("reference", Text, nullable=False),
    Column("added_at", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("images_by_key", "key", "added_us"),
)

# Which process has a search now: one for each question, not for each campaign.
CLAIMS = Table(
    "claims",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("beat_us", BigInteger, nullable=False),
)

# Machines that take turns of shared runs; whether one is alive is its claim's matter.
MACHINES = Table(
    "machines",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("class_name", Text, nullable=False),
    Column("rest", JSON, nullable=False),
)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("request_key", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("started_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("runs_by_state", "state", "request_key"),
)

# What machines put into a registry for each other. Several of one key: the newest is asked for.
GIVEN_IMAGES = Table(
    "given_images",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("architecture", Text, nullable=False),
    Column("machine", Text, nullable=False),
    Column("added_at", Text, nullable=False),
    Column("added_us", BigInteger, nullable=False),
    Column("rest", JSON, nullable=False),
    Index("given_images_by_key", "key", "added_us"),
)


V = TypeVar("V", bound=Value)
RowValues = Mapping[str, Any]  # by column; what a database gives and takes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST = 2**63 - 1
TIMES = {
    "started_at": "started_us",
    "finished_at": "finished_us",
    "added_at": "added_us",
    "found_at": "found_us",
}


def encode(value: Value, table: Table, **further: str) -> RowValues:
    """The row of a value, with ``further`` columns that are not fields of it."""
    rest = _document(value)
    columns = {name: cell for name, cell in rest.items() if name in table.c} | further
    for name, number in TIMES.items():
        if number in table.c:
            told = columns[name]
            columns[number] = None if told is None else microseconds(told, _named(value, name))
    for name, cell in columns.items():
        _check_cell(cell, _named(value, name))
    return {**columns, "rest": {name: rest[name] for name in rest if name not in table.c}}


def decode(kind: type[V], row: RowValues) -> V:
    """The value of a row; UnreadableError when this version cannot read it."""
    fields = {name: row[name] for name in kind.model_fields if name in row}
    rest = row["rest"]
    document = {**rest, **fields} if isinstance(rest, dict) else rest
    return stored(kind, document, f"{kind.__name__.lower()} {str(row['id'])[:MOST_NAMED]!r}")


def microseconds(text: str, what: str) -> int:
    """A time in ISO 8601 as microseconds since 1970; without a zone it counts as UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise StoreError(
            f"{what} is not a time in ISO 8601: {text!r}",
            hint="write it as 2026-01-31T12:00:00+00:00",
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _document(value: Value) -> RowValues:
    try:
        # Strict first: JSON would silently turn a NaN of a nested dict into null.
        json.dumps(value.model_dump(), allow_nan=False, default=str)
        document = value.model_dump(mode="json")
        json.dumps(document, ensure_ascii=False).encode()  # a lone surrogate fails here
    except (ValueError, TypeError, RecursionError, PydanticSerializationError) as error:
        raise StoreError(
            f"{_named(value)} cannot be written as JSON: {error}",
            hint="numbers must be finite, everything else text, lists or mappings",
        ) from error
    return document


def _check_cell(cell: object, what: str) -> None:
    """SQLite and PostgreSQL differ in what they accept; a store must fit both."""
    if isinstance(cell, str) and "\0" in cell:
        raise StoreError(f"{what} holds a NUL character: {cell!r}", hint="remove it")
    if isinstance(cell, int) and not -LARGEST <= cell <= LARGEST:
        raise StoreError(f"{what} is out of range: {cell}", hint=f"at most {LARGEST}")


def _named(value: Value, field: str = "") -> str:
    name = f"{type(value).__name__.lower()} {getattr(value, 'id', getattr(value, 'key', ''))!r}"
    return f"{field} of {name}" if field else name
