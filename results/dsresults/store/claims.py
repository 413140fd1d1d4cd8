"""Claims: at most one process has a search, and a dead process has none."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, delete, select, text, update

from dsharness.containers.ownership import lives, owner_tag
from dsharness.machine.host import place_id
from dsresults.store.database import Database
from dsresults.store.tables import CLAIMS

STALE_S = 300.0  # without a sign of life: then a holder that cannot be checked counts as dead


@dataclass(frozen=True, kw_only=True)
class Holder:
    """A process that has a search."""

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


def take(database: Database, connection: Connection, key: str, me: Holder) -> Holder | None:
    """None if it is ours now; otherwise the process that has it."""
    now_us = clock_us(database, connection)
    row = {"id": key, **_columns(me), "beat_us": now_us}
    if database.insert_new(connection, CLAIMS, row):
        return None
    query = select(CLAIMS).where(CLAIMS.c.id == key)
    there = connection.execute(query if database.embedded else query.with_for_update())
    found = there.mappings().one_or_none()
    if found is None:  # released just now
        return None if database.insert_new(connection, CLAIMS, row) else me
    holder = Holder(**{name: found[name] for name in _columns(me)})
    mine = (holder.place, holder.owner) == (me.place, me.owner)
    if not mine and not holder.gone((now_us - found["beat_us"]) / 1e6, me.place):
        return holder
    connection.execute(update(CLAIMS).where(CLAIMS.c.id == key).values(row))
    return None


def beat(database: Database, connection: Connection, key: str, me: Holder) -> bool:
    """Renew our claim; False if another process has taken it."""
    values = {"beat_us": clock_us(database, connection)}
    return connection.execute(update(CLAIMS).where(*_ours(key, me)).values(values)).rowcount == 1


def release(connection: Connection, key: str, me: Holder) -> None:
    connection.execute(delete(CLAIMS).where(*_ours(key, me)))


def holders(
    database: Database, connection: Connection, start: str
) -> dict[str, tuple[Holder, float]]:
    """Who has the claims whose keys begin so, and for how many seconds each gave no sign."""
    now_us = clock_us(database, connection)
    query = select(CLAIMS).where(CLAIMS.c.id.startswith(start, autoescape=True))
    return {
        row["id"]: (
            Holder(host=row["host"], place=row["place"], owner=row["owner"], since=row["since"]),
            (now_us - row["beat_us"]) / 1e6,
        )
        for row in connection.execute(query).mappings()
    }


def _ours(key: str, me: Holder) -> tuple[ColumnElement[bool], ...]:
    return (CLAIMS.c.id == key, CLAIMS.c.place == me.place, CLAIMS.c.owner == me.owner)


def _columns(holder: Holder) -> dict[str, str]:
    return {
        "host": holder.host,
        "place": holder.place,
        "owner": holder.owner,
        "since": holder.since,
    }


def clock_us(database: Database, connection: Connection) -> int:
    """The time by one clock for all machines: the database's, where it has one."""
    if database.embedded:
        return time.time_ns() // 1000
    asked = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    return int(connection.execute(asked).scalar_one())
