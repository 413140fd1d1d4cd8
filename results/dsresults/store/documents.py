"""Documents: what is asked, answered or known, whole under its kind and id.

``of`` is what a document belongs to, ``state`` how far it came. Both, its id and its time follow
from the value, so a row whose columns say something else than its body is not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, RowMapping, Select, delete, select, update

from dsharness.content_key import content_key
from dsharness.errors import StoreError, UnreadableError
from dsharness.model import Boundary, Campaign, Finding, FleetMachine, GivenImage, Image, SharedRun
from dsharness.model.value import Value
from dsresults.store.database import Database, clock_us, insert_new
from dsresults.store.tables import (
    DOCUMENTS,
    Row,
    RowValues,
    check_cell,
    json_of,
    microseconds,
    named,
)
from dsresults.stored_value import MOST_NAMED, OTHER, stored

V = TypeVar("V", bound=Value)
OPEN, ANSWERED = "open", "answered"  # the states of a campaign
ANSWER = {"finished_at": None, "boundary": None}  # what it lacks while it is open


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of document: what its columns are, from the value."""

    name: str
    of: Callable[[Any], str]
    state: Callable[[Any], str] = lambda _: ""
    time: str = ""  # its field; without one it counts from when the database got it
    by_content: bool = False  # its id is a key of all that it holds: two that differ are two


KINDS = {
    Campaign: Kind(
        name="campaign",
        of=lambda campaign: campaign.fingerprint,
        state=lambda campaign: OPEN if campaign.finished_at is None else ANSWERED,
        time="started_at",
    ),
    Finding: Kind(name="finding", of=lambda finding: finding.kind, time="found_at"),
    Image: Kind(name="image", of=lambda image: image.key, by_content=True),
    FleetMachine: Kind(name="machine", of=lambda machine: machine.name),
    SharedRun: Kind(
        name="run",
        of=lambda run: run.request_key,
        state=lambda run: run.state.value,
        time="started_at",
    ),
    # Several of one key: the newest is asked for.
    GivenImage: Kind(
        name="given image",
        of=lambda image: given_key(image.kind, image.key, image.architecture),
        by_content=True,
    ),
}


def given_key(kind: str, key: str, architecture: str) -> str:
    """What a given image belongs to: all that are of it can stand for each other."""
    return f"{kind} {key} {architecture}"


def put_document(connection: Connection, value: Value, *, time_us: int | None = None) -> bool:
    """False if the same document exists already; an answer is added to a campaign without one."""
    kind = KINDS[type(value)]
    if time_us is None:
        time_us = 0 if kind.time else clock_us(connection)
    row = row_of(value, time_us)
    if insert_new(connection, DOCUMENTS, row):
        return True
    if kind.by_content:
        return False
    stored_body = _body(connection, kind, row["id"])
    if stored_body == row["body"]:
        return False
    if isinstance(value, Campaign) and {**stored_body, **ANSWER} == {**row["body"], **ANSWER}:
        if value.finished_at is None or change_document(connection, value, state=OPEN):
            return False
        stored_body = _body(connection, kind, row["id"])  # another process was quicker
        if stored_body == row["body"]:
            return False
    raise conflict(kind.name, row["id"], row["body"], stored_body)


def change_document(connection: Connection, value: Value, *, state: str | None = None) -> bool:
    """Replace a document's body and state; False if there is none, or none in that ``state``."""
    row = row_of(value, 0)
    which = [DOCUMENTS.c[name] == row[name] for name in ("kind", "id")]
    if state is not None:
        which.append(DOCUMENTS.c.state == state)
    changed = {name: row[name] for name in ("state", "body")}
    return connection.execute(update(DOCUMENTS).where(*which).values(changed)).rowcount == 1


def answer_campaign(
    database: Database,
    connection: Connection,
    campaign_id: str,
    boundary: Boundary,
    finished_at: str,
) -> None:
    """Give a campaign its answer; the same answer again changes nothing."""
    microseconds(finished_at, f"finished_at of campaign {campaign_id!r}")
    answer = {"finished_at": finished_at, "boundary": boundary}
    campaign = get_document(connection, Campaign, campaign_id)
    if campaign is None:
        raise StoreError(
            f"{database.location} has no campaign {campaign_id!r}",
            hint="`dsbisect list answers` shows those it has",
        )
    answered = campaign.model_copy(update=answer)
    if change_document(connection, answered, state=OPEN):
        return
    latest = get_document(
        connection, Campaign, campaign_id
    )  # another process may have been quicker
    if latest != answered:
        raise StoreError(
            f"campaign {campaign_id!r} was already answered at {latest and latest.finished_at}",
            hint="start a new campaign: an answer is never changed",
        )


def get_document(
    connection: Connection, kind: type[V], identity: str, *, lock: bool = False
) -> V | None:
    """The document with that id; with ``lock`` nobody else changes it until the transaction ends.

    UnreadableError if there is one and this version cannot read it.
    """
    row = find_row(connection, kind, identity, lock=lock)
    return None if row is None else decode_document(kind, row)


def find_row(
    connection: Connection, kind: type[Value], identity: str, *, lock: bool = False
) -> RowMapping | None:
    query = documents_of(kind).where(DOCUMENTS.c.id == identity)
    return connection.execute(query.with_for_update() if lock else query).mappings().one_or_none()


def find_documents(
    database: Database,
    connection: Connection,
    kind: type[V],
    *,
    of: Collection[str] = (),
    state: str | None = None,
    newest: int | None = None,
    where: Iterable[ColumnElement[bool]] = (),
) -> list[V]:
    """Those that fit all that is given, in time order; ties are broken by id.

    One that cannot be read is left out, and told once.
    """
    query = documents_of(kind).where(*where)
    if of:
        query = query.where(DOCUMENTS.c.of.in_(of))
    if state is not None:
        query = query.where(DOCUMENTS.c.state == state)
    order = (DOCUMENTS.c.time_us, DOCUMENTS.c.id)
    if newest is None:
        rows = [*connection.execute(query.order_by(*order)).mappings()]
    else:
        latest = query.order_by(*(column.desc() for column in order)).limit(newest)
        rows = [*reversed(connection.execute(latest).mappings().all())]
    return [*database.readable(partial(decode_document, kind), rows)]


def get_documents(connection: Connection, kind: type[V], ids: Collection[str]) -> list[V]:
    """Those with these ids that there are; UnreadableError if one cannot be read."""
    query = documents_of(kind).where(DOCUMENTS.c.id.in_(ids))
    ordered = query.order_by(DOCUMENTS.c.time_us, DOCUMENTS.c.id)
    return [decode_document(kind, row) for row in connection.execute(ordered).mappings()]


def forget_document(connection: Connection, kind: type[Value], identity: str) -> None:
    of_kind = (DOCUMENTS.c.kind == KINDS[kind].name, DOCUMENTS.c.id == identity)
    connection.execute(delete(DOCUMENTS).where(*of_kind))


def document_ids(
    connection: Connection, kinds: Iterable[type[Value]], which: ColumnElement[bool]
) -> set[str]:
    """Ids alone, without what is kept under them."""
    names = [KINDS[kind].name for kind in kinds]
    query = select(DOCUMENTS.c.id).where(DOCUMENTS.c.kind.in_(names), which)
    return set(connection.scalars(query))


def could_not_measure(candidate: str) -> ColumnElement[bool]:
    """Of a campaign whose answer may name a candidate that could not be measured."""
    refused: ColumnElement[str] = DOCUMENTS.c.body["boundary", "unmeasured"].as_string()
    return refused.contains(f"{json.dumps(candidate)}:", autoescape=True)


def documents_of(kind: type[Value]) -> Select[Any]:
    return select(DOCUMENTS).where(DOCUMENTS.c.kind == KINDS[kind].name)


def row_of(value: Value, time_us: int) -> RowValues:
    """A value as a row; its own time, if it has one, instead of ``time_us``."""
    kind, body = KINDS[type(value)], json_of(value)
    columns = _columns(kind, value)
    for name, cell in {**body, **columns}.items():
        check_cell(cell, named(value, name))
    if kind.by_content:
        columns["id"] = content_key(body)
    return {"kind": kind.name, "time_us": time_us, **columns, "body": body}


def decode_document(kind: type[V], row: Row) -> V:
    """The value of a row; UnreadableError when this version cannot read it, or it contradicts."""
    of_kind = KINDS[kind]
    what = f"{of_kind.name} {_short(row['id'])}"
    value = stored(kind, row["body"], what)
    try:
        columns = _columns(of_kind, value)
    except StoreError as error:
        raise UnreadableError(
            f"the stored {what} cannot be read: {error.message}", hint=OTHER
        ) from error
    for name, cell in columns.items():
        if row[name] != cell:
            raise UnreadableError(
                f"the stored {what} cannot be read: its {name} is {_short(cell)} in its body,"
                f" {_short(row[name])} in the table",
                hint=OTHER,
            )
    return value


def _columns(kind: Kind, value: Value) -> dict[str, object]:
    """What follows from the value alone."""
    columns: dict[str, object] = {"of": kind.of(value), "state": kind.state(value)}
    if not kind.by_content:
        columns["id"] = str(getattr(value, "id"))  # noqa: B009
    if kind.time:
        columns["time_us"] = microseconds(getattr(value, kind.time), named(value, kind.time))
    return columns


def _short(cell: object) -> str:
    return repr(str(cell)[:MOST_NAMED])


def _body(connection: Connection, kind: Kind, identity: str) -> RowValues:
    which = (DOCUMENTS.c.kind == kind.name, DOCUMENTS.c.id == identity)
    body = connection.scalar(select(DOCUMENTS.c.body).where(*which))
    return body if isinstance(body, dict) else {"body": body}


def conflict(name: str, identity: str, ours: RowValues, stored_row: RowValues) -> StoreError:
    """The error of two that differ and have one id."""
    missing = object()
    differing = sorted(
        field
        for field in {*ours, *stored_row}
        if ours.get(field, missing) != stored_row.get(field, missing)
    )
    before, now = (str(row.get(differing[0]))[:80] for row in (stored_row, ours))
    return StoreError(
        f"the {name} {identity!r} is already in the store, with another"
        f" {', '.join(differing)}: {before!r}, not {now!r}",
        hint="ids are never reused: one of the two was edited; remove or correct it",
    )
