"""Put one value into its table: once, completely, and never over a different one."""

from __future__ import annotations

from sqlalchemy import Connection, Table, select, update

from dsharness.content_key import content_key
from dsharness.errors import StoreError
from dsharness.model import Boundary, Campaign, Image, Sample, Turn, TurnState
from dsresults.store.database import Database
from dsresults.store.row_encoding import RowValues, encode, microseconds
from dsresults.store.tables import CAMPAIGNS, IMAGES, SAMPLES, TURNS

ANSWER = ("finished_at", "finished_us", "boundary")


def put_sample(database: Database, connection: Connection, sample: Sample) -> bool:
    """False if the same sample exists already."""
    return _put(database, connection, SAMPLES, encode(sample, SAMPLES))


def put_turn(database: Database, connection: Connection, turn: Turn) -> bool:
    """False if it exists already; one that was planned may have ended since."""
    row = encode(turn, TURNS, id=turn.id)
    if database.insert_new(connection, TURNS, row):
        return True
    if _there(connection, TURNS, turn.id) != row and not _end_turn(connection, row):
        there = _there(connection, TURNS, turn.id)
        if TurnState(row["state"]) is not TurnState.PLANNED:
            raise _conflict(TURNS, row, there)
    return False


def _end_turn(connection: Connection, row: RowValues) -> bool:
    """False unless it is planned and nothing more."""
    planned = (TURNS.c.id == row["id"], TURNS.c.state == TurnState.PLANNED)
    return connection.execute(update(TURNS).where(*planned).values(row)).rowcount == 1


def give_up_turns(connection: Connection, campaign_id: str) -> int:
    """Those of a campaign that were begun and have not ended; how many."""
    open_turns = (TURNS.c.campaign_id == campaign_id, TURNS.c.state == TurnState.PLANNED)
    given_up = update(TURNS).where(*open_turns).values(state=TurnState.GIVEN_UP.value)
    return connection.execute(given_up).rowcount


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
