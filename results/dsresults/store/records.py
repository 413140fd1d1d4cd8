"""Put one value into its table: once, completely, and never over a different one."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Table,
    and_,
    exists,
    func,
    select,
    update,
)

from dsharness.content_key import content_key
from dsharness.errors import StoreError, UnreadableError
from dsharness.model import Boundary, Campaign, Finding, Image, Sample, Turn, TurnState, Value
from dsresults.store.database import Database
from dsresults.store.tables import (
    CAMPAIGNS,
    FINDINGS,
    GIVEN_UP,
    IMAGES,
    PLANNED,
    SAMPLES,
    TURNS,
    RowValues,
    decode,
    encode,
    microseconds,
)

ENDING = ("refused", "spent")  # what a turn's end adds to it
ANSWER = ("finished_at", "finished_us", "boundary")


def put_sample(database: Database, connection: Connection, sample: Sample) -> bool:
    """False if the same sample exists already."""
    return _put(database, connection, SAMPLES, encode(sample, SAMPLES))


def put_turn(database: Database, connection: Connection, turn: Turn) -> bool:
    """False if it exists already; one that was planned may have ended since."""
    row, planned = encode(turn, TURNS, id=turn.id), turn.state is TurnState.PLANNED
    if not planned and _end_turn(connection, turn, row):
        return False
    if database.insert_new(connection, TURNS, row):
        return True
    there = _there(connection, TURNS, turn.id)
    if there != row and not planned and not _end_turn(connection, turn, row):
        raise _conflict(TURNS, row, _there(connection, TURNS, turn.id))
    return False


def _end_turn(connection: Connection, turn: Turn, row: RowValues) -> bool:
    """False unless it is planned and nothing more; it stays what it was planned as."""
    planned = (TURNS.c.id == turn.id, TURNS.c.state == TurnState.PLANNED)
    there = connection.execute(select(TURNS).where(*planned)).mappings().one_or_none()
    if there is None:
        return False
    ending = {name: getattr(turn, name) for name in ("state", *ENDING)}
    if decode(Turn, dict(there)).model_copy(update=ending) != turn:
        raise _conflict(TURNS, row, dict(there))
    rest = {**there["rest"], **{name: row["rest"][name] for name in ENDING}}
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
    for turn in readable(database, Turn, connection.execute(begun).mappings().all()):
        if machines is not None and turn.machine and turn.machine not in machines:
            continue
        of_it = (SAMPLES.c.turn == turn.number, SAMPLES.c.attempt == turn.attempt)
        taken = connection.scalars(
            select(SAMPLES.c.candidate_id).where(SAMPLES.c.campaign_id == campaign_id, *of_it)
        )
        whole = set(taken).issuperset(turn.candidates)
        state = TurnState.DONE if whole else TurnState.GIVEN_UP
        planned = (TURNS.c.id == turn.id, TURNS.c.state == TurnState.PLANNED.value)
        ended = update(TURNS).where(*planned).values(state=state.value)
        ended_turns += connection.execute(ended).rowcount
    return ended_turns


def give_up_turns(connection: Connection, turn_ids: Collection[str]) -> int:
    """Give up these turns, however they ended; how many are: a machine's role may not."""
    these = TURNS.c.id.in_(turn_ids)
    connection.execute(update(TURNS).where(these).values(state=TurnState.GIVEN_UP.value))
    given_up = select(func.count()).where(these, TURNS.c.state == GIVEN_UP)
    return connection.execute(given_up).scalar_one()


def put_finding(database: Database, connection: Connection, finding: Finding) -> bool:
    """False if it exists already."""
    return _put(database, connection, FINDINGS, encode(finding, FINDINGS, id=finding.id))


def put_image(database: Database, connection: Connection, image: Image, *, added_at: str) -> bool:
    """False if the same manifest exists already."""
    identity = content_key(image.model_dump(mode="json"))
    row = encode(image, IMAGES, id=identity, added_at=added_at)
    return database.insert_new(connection, IMAGES, row)


def put_campaign(database: Database, connection: Connection, campaign: Campaign) -> bool:
    """False if it exists already; an answer is added to a campaign that had none."""
    row = encode(campaign, CAMPAIGNS)
    if database.insert_new(connection, CAMPAIGNS, row):
        return True
    there = _there(connection, CAMPAIGNS, row["id"])
    if _without_answer(there) != _without_answer(row):
        raise _conflict(CAMPAIGNS, row, there)
    if row["finished_at"] is None or _answer(there) == _answer(row):
        return False
    if not _write_answer(connection, row["id"], _answer(row)):
        raise _conflict(CAMPAIGNS, row, _there(connection, CAMPAIGNS, row["id"]))
    return False


def answer_campaign(
    database: Database, connection: Connection, campaign_id: str, boundary: Boundary, at: str
) -> None:
    """Give a campaign its answer; the same answer again changes nothing."""
    answer = {
        "finished_at": at,
        "finished_us": microseconds(at, f"finished_at of campaign {campaign_id!r}"),
        "boundary": boundary.model_dump(mode="json"),
    }
    found = connection.execute(select(CAMPAIGNS).where(CAMPAIGNS.c.id == campaign_id))
    there = found.mappings().one_or_none()
    if there is None:
        raise StoreError(
            f"{database.location} has no campaign {campaign_id!r}",
            hint="`dsbisect results list` shows those it has",
        )
    if _write_answer(connection, campaign_id, answer):
        return
    known = _there(connection, CAMPAIGNS, campaign_id)  # another process may have been quicker
    if _answer(known) != answer:
        raise StoreError(
            f"campaign {campaign_id!r} was already answered at {known['finished_at']}",
            hint="start a new campaign: an answer is never changed",
        )


def _put(database: Database, connection: Connection, table: Table, row: RowValues) -> bool:
    if database.insert_new(connection, table, row):
        return True
    there = _there(connection, table, row["id"])
    if there != row:
        raise _conflict(table, row, there)
    return False


def _there(connection: Connection, table: Table, identity: str) -> RowValues:
    return dict(connection.execute(select(table).where(table.c.id == identity)).mappings().one())


def _write_answer(connection: Connection, campaign_id: str, answer: RowValues) -> bool:
    """False if it has an answer: one statement checks and writes, since others may do the same."""
    unanswered = (CAMPAIGNS.c.id == campaign_id, CAMPAIGNS.c.finished_at.is_(None))
    return connection.execute(update(CAMPAIGNS).where(*unanswered).values(answer)).rowcount == 1


def _answer(row: RowValues) -> RowValues:
    return {name: row[name] for name in ANSWER}


def _without_answer(row: RowValues) -> RowValues:
    return {name: row[name] for name in row if name not in ANSWER}


def _conflict(table: Table, row: RowValues, there: RowValues) -> StoreError:
    differing = sorted(name for name in row if row[name] != there[name])
    name = differing[0]
    return StoreError(
        f"the {table.name[:-1]} {row['id']!r} is already in the store, with another"
        f" {', '.join(differing)}: {str(there[name])[:80]!r}, not {str(row[name])[:80]!r}",
        hint="ids are never reused: one of the two was edited; remove or correct it",
    )


V = TypeVar("V", bound=Value)


def find_samples(database: Database, given: Mapping[str, str | None]) -> list[Sample]:
    return _find(database, Sample, SAMPLES, given, ~_given_up(), order="started_us")


def find_findings(
    database: Database,
    *,
    kinds: Collection[str] = (),
    ids: Collection[str] = (),
    newest: int | None = None,
) -> list[Finding]:
    """Those of these kinds, or with these ids; all where neither is given."""
    asked = ((FINDINGS.c.kind, kinds), (FINDINGS.c.id, ids))
    wanted = [column.in_(values) for column, values in asked if values]
    return _find(
        database, Finding, FINDINGS, {}, *wanted,
        order="found_us", newest=newest, all_of_them=bool(ids),
    )  # fmt: skip


def find_turn_state(database: Database, turn_id: str) -> TurnState | None:
    with database.looking() as connection:
        found = connection.scalar(select(TURNS.c.state).where(TURNS.c.id == turn_id))
    return None if found is None else TurnState(found)


def find_planned_turns(database: Database) -> list[Turn]:
    return _find(database, Turn, TURNS, {}, TURNS.c.state == PLANNED, order="number")


def find_turns(database: Database, campaign_id: str) -> list[Turn]:
    given = {"campaign_id": campaign_id}
    found = _find(database, Turn, TURNS, given, order="number", all_of_them=True)
    return sorted(found, key=lambda turn: (turn.number, turn.attempt))


def find_images(database: Database, given: Mapping[str, str | None]) -> list[Image]:
    return _find(database, Image, IMAGES, given, order="added_us")


def find_campaigns(
    database: Database,
    given: Mapping[str, str | None],
    *,
    ids: Collection[str] = (),
    finished: bool | None = None,
    newest: int | None = None,
) -> list[Campaign]:
    wanted: list[ColumnElement[bool]] = [CAMPAIGNS.c.id.in_(ids)] if ids else []
    if finished is not None:
        wanted.append(CAMPAIGNS.c.finished_at.is_not(None) == finished)
    return _find(
        database, Campaign, CAMPAIGNS, given, *wanted,
        order="started_us", newest=newest, all_of_them=bool(ids),
    )  # fmt: skip


def find_campaigns_without(database: Database, candidate: str) -> list[Campaign]:
    """Only these are read whole: of the others the database looks at what they refused."""
    refused = CAMPAIGNS.c.boundary["unmeasured"].as_string()
    named = refused.contains(f"{json.dumps(candidate)}:", autoescape=True)
    found = _find(database, Campaign, CAMPAIGNS, {}, named, order="started_us")
    return [each for each in found if each.boundary and candidate in each.boundary.unmeasured]


def find_campaign_ids(database: Database, ids: Collection[str]) -> set[str]:
    with database.looking() as connection:
        return set(connection.scalars(select(CAMPAIGNS.c.id).where(CAMPAIGNS.c.id.in_(ids))))


def ids_from(database: Database, start: str) -> list[str]:
    """The ids of campaigns and findings that begin so, without what is kept under them."""
    queries = (
        select(table.c.id).where(table.c.id.startswith(start, autoescape=True))
        for table in (CAMPAIGNS, FINDINGS)
    )
    with database.reading() as connection:
        return sorted({name for query in queries for name in connection.scalars(query)})


def count_samples(database: Database) -> dict[str, int]:
    query = (
        select(SAMPLES.c.campaign_id, func.count())
        .where(~_given_up())
        .group_by(SAMPLES.c.campaign_id)
    )
    with database.looking() as connection:
        return {row[0]: row[1] for row in connection.execute(query)}


def _given_up() -> ColumnElement[bool]:
    """Whether a sample is of an attempt that was interrupted."""
    return exists().where(_of_its_turn(), TURNS.c.state == GIVEN_UP)


def _of_its_turn() -> ColumnElement[bool]:
    return and_(
        TURNS.c.campaign_id == SAMPLES.c.campaign_id,
        TURNS.c.number == SAMPLES.c.turn,
        TURNS.c.attempt == SAMPLES.c.attempt,
    )


def _find(
    database: Database,
    kind: type[V],
    table: Table,
    given: Mapping[str, str | None],
    *further: ColumnElement[bool],
    order: str,
    newest: int | None = None,
    all_of_them: bool = False,
) -> list[V]:
    """None in ``given`` matches everything; ties are broken by id, so the order never varies.

    One that cannot be read is left out, unless ``all_of_them`` are needed: then UnreadableError.
    """
    wanted = [table.c[name] == value for name, value in given.items() if value is not None]
    query = select(table).where(*wanted, *further)
    columns = (table.c[order], table.c.id)
    if newest is None:
        query = query.order_by(*columns)
    else:
        query = query.order_by(*(column.desc() for column in columns)).limit(newest)
    with database.looking() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    ordered = rows if newest is None else [*reversed(rows)]
    if all_of_them or "id" in given:
        return [decode(kind, row) for row in ordered]
    return readable(database, kind, ordered)


def readable(
    database: Database, kind: type[V], rows: Iterable[RowMapping] | Iterable[RowValues]
) -> list[V]:
    """The values of rows; what cannot be read is left out, and told once."""
    values: list[V] = []
    for row in rows:
        try:
            values.append(decode(kind, dict(row)))
        except UnreadableError as error:
            database.left_out(error)
    return values
