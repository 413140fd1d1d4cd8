"""Samples and turns: put once, completely, and never over a different one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Table, and_, exists, func, select, update

from dsharness.model import Sample, Turn, TurnState, Value
from dsresults.store.database import Database, insert_new
from dsresults.store.documents import conflict, put_document
from dsresults.store.tables import (
    GIVEN_UP,
    PLANNED,
    SAMPLES,
    TURNS,
    RowValues,
    decode,
    encode,
)

ENDING = ("refused", "spent")  # what a turn's end adds to it


def put(connection: Connection, value: Value) -> bool:
    """Keep a value; False if it exists already, StoreError if it differs."""
    if isinstance(value, Sample):
        return _put_sample(connection, value)
    if isinstance(value, Turn):
        return _put_turn(connection, value)
    return put_document(connection, value)


def _put_sample(connection: Connection, sample: Sample) -> bool:
    row = encode(sample, SAMPLES)
    if insert_new(connection, SAMPLES, row):
        return True
    stored_row = _stored_row(connection, SAMPLES, sample.id)
    if stored_row != row:
        raise conflict("sample", sample.id, row, stored_row)
    return False


def _put_turn(connection: Connection, turn: Turn) -> bool:
    """False if it exists already; one that was planned may have ended since."""
    row, planned = encode(turn, TURNS, id=turn.id), turn.state is TurnState.PLANNED
    if not planned and _end_turn(connection, turn, row):
        return False
    if insert_new(connection, TURNS, row):
        return True
    stored_row = _stored_row(connection, TURNS, turn.id)
    if stored_row != row and not planned and not _end_turn(connection, turn, row):
        raise conflict("turn", turn.id, row, _stored_row(connection, TURNS, turn.id))
    return False


def _end_turn(connection: Connection, turn: Turn, row: RowValues) -> bool:
    """False unless it is planned and nothing more; it stays what it was planned as."""
    planned = (TURNS.c.id == turn.id, TURNS.c.state == TurnState.PLANNED)
    stored_row = connection.execute(select(TURNS).where(*planned)).mappings().one_or_none()
    if stored_row is None:
        return False
    ending = {name: getattr(turn, name) for name in ("state", *ENDING)}
    if decode(Turn, dict(stored_row)).model_copy(update=ending) != turn:
        raise conflict("turn", turn.id, row, dict(stored_row))
    rest = {**stored_row["rest"], **{name: row["rest"][name] for name in ENDING}}
    ended = update(TURNS).where(*planned).values(state=row["state"], rest=rest)
    return connection.execute(ended).rowcount == 1


def settle_turns(
    database: Database, connection: Connection, campaign_id: str, machines: Collection[str] | None
) -> int:
    """End what these machines began, or all: done with a sample of each candidate, else given up.

    Returns how many it ended. A turn that is any machine's is one of theirs.
    """
    begun = select(TURNS).where(TURNS.c.campaign_id == campaign_id, TURNS.c.state == PLANNED)
    ended_turns = 0
    for turn in database.readable(
        partial(decode, Turn), connection.execute(begun).mappings().all()
    ):
        if machines is not None and turn.machine and turn.machine not in machines:
            continue
        of_it = (SAMPLES.c.turn == turn.number, SAMPLES.c.attempt == turn.attempt)
        measured = connection.scalars(
            select(SAMPLES.c.candidate_id).where(SAMPLES.c.campaign_id == campaign_id, *of_it)
        )
        whole = set(measured).issuperset(turn.candidates)
        state = TurnState.DONE if whole else TurnState.GIVEN_UP
        planned = (TURNS.c.id == turn.id, TURNS.c.state == TurnState.PLANNED.value)
        ended = update(TURNS).where(*planned).values(state=state.value)
        ended_turns += connection.execute(ended).rowcount
    return ended_turns


def _stored_row(connection: Connection, table: Table, identity: str) -> RowValues:
    return dict(connection.execute(select(table).where(table.c.id == identity)).mappings().one())


def give_up_turns(connection: Connection, turn_ids: Collection[str]) -> int:
    """Give up these turns, however they ended; how many are: a machine's role may not."""
    named = TURNS.c.id.in_(turn_ids)
    connection.execute(update(TURNS).where(named).values(state=TurnState.GIVEN_UP.value))
    given_up = select(func.count()).where(named, TURNS.c.state == GIVEN_UP)
    return connection.execute(given_up).scalar_one()


V = TypeVar("V", bound=Value)


def find_samples(database: Database, given: Mapping[str, str | None]) -> list[Sample]:
    """Those that match everything given, but of attempts that were interrupted; in time order."""
    order = (SAMPLES.c.started_us, SAMPLES.c.id)
    query = _matching(SAMPLES, given).where(~_given_up()).order_by(*order)
    return _values(database, Sample, query, whole="id" in given)


def find_turns(database: Database, given: Mapping[str, str | None]) -> list[Turn]:
    """Those that match everything given, in order; UnreadableError where one cannot be read."""
    query = _matching(TURNS, given).order_by(TURNS.c.number, TURNS.c.attempt)
    return _values(database, Turn, query, whole=True)


def find_planned_turns(database: Database) -> list[Turn]:
    query = select(TURNS).where(TURNS.c.state == PLANNED).order_by(TURNS.c.number, TURNS.c.id)
    return _values(database, Turn, query)


def count_samples(database: Database) -> dict[str, int]:
    query = (
        select(SAMPLES.c.campaign_id, func.count())
        .where(~_given_up())
        .group_by(SAMPLES.c.campaign_id)
    )
    with database.looking() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def sample_ids(connection: Connection, start: str) -> set[str]:
    """The ids that begin so."""
    query = select(SAMPLES.c.id).where(SAMPLES.c.id.startswith(start, autoescape=True))
    return set(connection.scalars(query))


def _given_up() -> ColumnElement[bool]:
    """Whether a sample is of an attempt that was interrupted."""
    return exists().where(_of_its_turn(), TURNS.c.state == GIVEN_UP)


def _of_its_turn() -> ColumnElement[bool]:
    return and_(
        TURNS.c.campaign_id == SAMPLES.c.campaign_id,
        TURNS.c.number == SAMPLES.c.turn,
        TURNS.c.attempt == SAMPLES.c.attempt,
    )


def _matching(table: Table, given: Mapping[str, str | None]) -> Select[Any]:
    """None in ``given`` matches everything."""
    wanted = [table.c[name] == value for name, value in given.items() if value is not None]
    return select(table).where(*wanted)


def _values(
    database: Database, kind: type[V], query: Select[Any], *, whole: bool = False
) -> list[V]:
    """One that cannot be read is left out; UnreadableError where the ``whole`` is needed."""
    with database.looking() as connection:
        rows = connection.execute(query).mappings().all()
    if whole:
        return [decode(kind, row) for row in rows]
    return [*database.readable(partial(decode, kind), rows)]
