"""The four tables, and how samples and turns become rows of theirs.

migrations/ is how a database gets there. What is asked, answered or known is a document, whole in
``body``; the other columns say what it is found by (documents.py). Samples and turns are many, so
each field that a query needs has a column of its own; every other field lives in ``rest``.
``*_us`` columns are microseconds since 1970 UTC: times as text sort wrongly if they are written
differently. No foreign keys: a sample of an unknown campaign is still a measurement worth keeping.
A value comes back from its row exactly; what cannot is refused.
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
    RowMapping,
    Table,
    Text,
    literal_column,
    text,
)

from dsharness.errors import StoreError
from dsharness.model import Value
from dsresults.stored_value import MOST_NAMED, stored

METADATA = MetaData()

DOCUMENTS = Table(
    "documents",
    METADATA,
    Column("kind", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("of", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("time_us", BigInteger, nullable=False),
    Column("body", JSON, nullable=False),
    Index("documents_by_owner", "kind", "of", "time_us"),
    Index("documents_by_state", "kind", "state", "time_us"),
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
    Column("attempt", BigInteger, nullable=False),
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

# What a process has now: a search (a lease for each question, not for each campaign), or a machine.
# Not documents: a machine's role removes its own leases, and nothing else anywhere.
LEASES = Table(
    "leases",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("host", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("since", Text, nullable=False),
    Column("beat_us", BigInteger, nullable=False),
)


V = TypeVar("V", bound=Value)
RowValues = Mapping[str, Any]  # by column; what a database takes
Row = RowMapping | RowValues  # what it gives

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LARGEST = 2**63 - 1


def encode(value: Value, table: Table, **further: str) -> RowValues:
    """The row of a sample or turn, with ``further`` columns that are not fields of it."""
    rest = json_of(value)
    columns = {name: cell for name, cell in rest.items() if name in table.c} | further
    if "started_us" in table.c:
        started_at = columns["started_at"]
        columns["started_us"] = microseconds(started_at, named(value, "started_at"))
    for name, cell in columns.items():
        check_cell(cell, named(value, name))
    return {**columns, "rest": {name: rest[name] for name in rest if name not in table.c}}


def decode(kind: type[V], row: Row) -> V:
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


def iso_time(time_us: int) -> str:
    """The same the other way round, in UTC."""
    return (EPOCH + timedelta(microseconds=time_us)).isoformat()


def json_of(value: Value) -> RowValues:
    """The whole value as JSON; StoreError where JSON would change it."""
    try:
        # Strict first: JSON would silently turn a NaN of a nested dict into null.
        json.dumps(value.model_dump(), allow_nan=False, default=str)
        document = value.model_dump(mode="json")
        json.dumps(document, ensure_ascii=False).encode()  # a lone surrogate fails here
    except (ValueError, TypeError, RecursionError, PydanticSerializationError) as error:
        raise StoreError(
            f"{named(value)} cannot be written as JSON: {error}",
            hint="numbers must be finite, everything else text, lists or mappings",
        ) from error
    return document


def check_cell(cell: object, what: str) -> None:
    """SQLite and PostgreSQL differ in what they accept; a store must fit both."""
    if isinstance(cell, str) and "\0" in cell:
        raise StoreError(f"{what} holds a NUL character: {cell!r}", hint="remove it")
    if isinstance(cell, int) and not -LARGEST <= cell <= LARGEST:
        raise StoreError(f"{what} is out of range: {cell}", hint=f"at most {LARGEST}")


def named(value: Value, field: str = "") -> str:
    """How a message calls a value, or a field of it."""
    name = f"{type(value).__name__.lower()} {getattr(value, 'id', getattr(value, 'key', ''))!r}"
    return f"{field} of {name}" if field else name
