"""Ask a table for the values that match, in the order of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sqlalchemy import ColumnElement, Table, and_, exists, func, select

from dsharness.model import Campaign, Image, Sample, Turn, TurnState, Value
from dsresults.store.database import Database
from dsresults.store.row_encoding import decode
from dsresults.store.tables import CAMPAIGNS, IMAGES, SAMPLES, TURNS

V = TypeVar("V", bound=Value)


def find_samples(database: Database, given: Mapping[str, str | None]) -> list[Sample]:
    return _find(database, Sample, SAMPLES, given, ~_given_up(), order="started_us")


def find_turns(database: Database, campaign_id: str) -> list[Turn]:
    given = {"campaign_id": campaign_id}
    found = _find(database, Turn, TURNS, given, order="number")
    return sorted(found, key=lambda turn: (turn.number, turn.attempt))


def find_images(database: Database, given: Mapping[str, str | None]) -> list[Image]:
    return _find(database, Image, IMAGES, given, order="added_us")


def find_campaigns(
    database: Database,
    given: Mapping[str, str | None],
    *,
    finished: bool | None = None,
) -> list[Campaign]:
    state = () if finished is None else (CAMPAIGNS.c.finished_at.is_not(None) == finished,)
    return _find(database, Campaign, CAMPAIGNS, given, *state, order="started_us")


def count_samples(database: Database) -> dict[str, int]:
    query = (
        select(SAMPLES.c.campaign_id, func.count())
        .where(~_given_up())
        .group_by(SAMPLES.c.campaign_id)
    )
    with database.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def _given_up() -> ColumnElement[bool]:
    """Whether a sample is of an attempt that was interrupted."""
    return exists().where(
        and_(
            TURNS.c.campaign_id == SAMPLES.c.campaign_id,
            TURNS.c.number == SAMPLES.c.turn,
            TURNS.c.attempt == SAMPLES.c.attempt,
            TURNS.c.state == TurnState.GIVEN_UP.value,
        )
    )


def _find(
    database: Database,
    kind: type[V],
    table: Table,
    given: Mapping[str, str | None],
    *further: ColumnElement[bool],
    order: str,
) -> list[V]:
    """None in ``given`` matches everything; ties are broken by id, so the order never varies."""
    wanted = [table.c[name] == value for name, value in given.items() if value is not None]
    query = select(table).where(*wanted, *further).order_by(table.c[order], table.c.id)
    with database.reading() as connection:
        rows: list[dict[str, object]] = [dict(row) for row in connection.execute(query).mappings()]
    return [decode(kind, row) for row in rows]
