"""Leases: at most one process has a search or a machine, and a dead process has none."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, select, update

from dsharness.containers.ownership import lives, owner_tag
from dsharness.machine.host import place_id
from dsresults.store.database import clock_us, insert_new
from dsresults.store.tables import LEASES

STALE_S = 300.0  # without a sign of life: then a holder that cannot be checked counts as dead


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that has a lease."""

    host: str
    place: str  # where its process id can be looked up
    owner: str  # process id and start
    since: str

    def gone(self, silent_s: float, here: str) -> bool:
        """Probably dead: its process id is gone, or it gave no sign of life."""
        return self.silent(silent_s, here, STALE_S)

    def silent(self, silent_s: float, here: str, limit_s: float) -> bool:
        """The same, where another time without a sign of life is too long."""
        return not lives(self.owner) if self.place == here else silent_s > limit_s

    def __str__(self) -> str:
        return f"process {self.owner.partition('@')[0]} on {self.host}, since {self.since}"


def this_process() -> Holder:
    return Holder(
        host=platform.node(),
        place=place_id(),
        owner=owner_tag(os.getpid()),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def take(connection: Connection, key: str, me: Holder) -> Holder | None:
    """Take a lease: None if it is ours now, else the process that has it."""
    now_us = clock_us(connection)
    row = {"id": key, **asdict(me), "beat_us": now_us}
    if insert_new(connection, LEASES, row):
        return None
    query = select(LEASES).where(LEASES.c.id == key).with_for_update()
    lease = connection.execute(query).mappings().one_or_none()
    if lease is None:  # released just now
        return None if insert_new(connection, LEASES, row) else me
    holder = _holder(lease)
    is_me = (holder.place, holder.owner) == (me.place, me.owner)
    if not is_me and not holder.gone((now_us - lease["beat_us"]) / 1e6, me.place):
        return holder
    connection.execute(update(LEASES).where(LEASES.c.id == key).values(row))
    return None


def renew(connection: Connection, key: str, me: Holder) -> bool:
    """Renew our lease; False if another process has taken it."""
    values = {"beat_us": clock_us(connection)}
    return connection.execute(update(LEASES).where(*_ours(key, me)).values(values)).rowcount == 1


def release(connection: Connection, key: str, me: Holder) -> None:
    connection.execute(delete(LEASES).where(*_ours(key, me)))


def holders(connection: Connection, start: str) -> dict[str, tuple[Holder, float]]:
    """Who has the leases whose keys begin so, and for how many seconds each gave no sign."""
    now_us = clock_us(connection)
    query = select(LEASES).where(LEASES.c.id.startswith(start, autoescape=True))
    return {
        row["id"]: (_holder(row), (now_us - row["beat_us"]) / 1e6)
        for row in connection.execute(query).mappings()
    }


def _ours(key: str, me: Holder) -> tuple[ColumnElement[bool], ...]:
    return (LEASES.c.id == key, LEASES.c.place == me.place, LEASES.c.owner == me.owner)


def _holder(row: RowMapping) -> Holder:
    return Holder(host=row["host"], place=row["place"], owner=row["owner"], since=row["since"])
