"""Every access to the database: a connection for each transaction.

SQLite's is closed with it. PostgreSQL's are kept, since a new one costs more than most of what is
asked; each is tried before it is used, and none is shared over a fork. A driver's errors become the
lab's own.
"""

from __future__ import annotations

import ipaddress
import json
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    NullPool,
    QueuePool,
    RowMapping,
    Table,
    Text,
    column,
    create_engine,
    event,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite

from dsharness.errors import (
    StoreError,
    UnreadableError,
    UpgradedError,
)
from dsharness.extras import install_command
from dsresults.store.driver_errors import translated
from dsresults.store.location import Location
from dsresults.stored_value import MOST_NAMED, warn

V = TypeVar("V")
VERSION_TABLE = "dsbisect_schema"


LOCK_WAIT_S = 30.0
# By the user or a service's file; `prefer` and `allow` leave it to whoever is in between.
TLS_IS_CHOSEN = {"disable", "require", "verify-ca", "verify-full"}
MOST_WARNINGS = 200
KEPT, MOST = 2, 12  # connections of a process: that wait to be used again, and at once
# So a network that is cut is noticed after half a minute, by whoever waits for an answer; and by
# the server, which keeps the locks of a connection until then.
_SERVER = {
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_WAITING = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}


def connecting(location: Location, **further: int) -> dict[str, object]:
    """What every connection to a server is given: how long it waits, and TLS over a network.

    The driver alone would go on in clear text, without a word, where a server has no TLS.
    """
    chosen = location.url.query.get("options", ())
    options = [chosen] if isinstance(chosen, str) else [*chosen]
    options += [f"-c {name}={value}" for name, value in (_SERVER | further).items()]
    given = {**_WAITING, "options": " ".join(options)}
    reached = _reached(location)
    if reached.get("sslmode") not in TLS_IS_CHOSEN and not all(map(_is_here, _hosts(reached))):
        given["sslmode"] = "require"
    return given


def conninfo(location: Location, **further: object) -> str:
    """The address of a server as its driver reads it, secrets and all."""
    from psycopg import Error  # noqa: PLC0415 - an extra
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    _, parameters = location.url.get_dialect()().create_connect_args(location.url)
    try:
        return make_conninfo(**{**parameters, **further})
    except Error as error:
        raise StoreError(
            f"the address of the results database {location} cannot be read: {error}",
            hint="postgresql://USER@HOST/DATABASE, then ?OPTION=VALUE as libpq knows them",
        ) from None  # the cause could quote it


def _reached(location: Location) -> Mapping[str, str]:
    """What the driver makes of an address, $PG... and a service's file: nothing listens on port 0.

    It only tells when it has begun to connect, and it looks at the port before it asks for a host.
    """
    from psycopg import pq  # noqa: PLC0415 - an extra

    begun = pq.PGconn.connect_start(conninfo(location, port=0).encode())
    try:
        return {option.keyword.decode(): (option.val or b"").decode() for option in begun.info}
    finally:
        begun.finish()


def _hosts(reached: Mapping[str, str]) -> list[str]:
    """Addresses that it connects to, and names: of another host's, a tunnel here may lead there."""
    return [host for name in ("hostaddr", "host") for host in reached.get(name, "").split(",")]


def _is_here(host: str) -> bool:
    """No network lies between: a socket (nothing, or a path), or this machine's loopback."""
    if host in {"", "localhost"} or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Database:
    """Reads from one snapshot, writes all or nothing, waits for others a limited time."""

    def __init__(self, location: Location, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self.location = location
        self.lock_wait_s = lock_wait_s
        self.tell: Callable[[str], object] = warn  # of what cannot be read
        self._warned: set[str] = set()
        self.schema: str | None = None  # that this process writes, once it is known to be there
        self.engine = _engine(location, lock_wait_s)
        weakref.finalize(self, self.engine.dispose)  # nobody has to close what was only read

    def left_out(self, error: UnreadableError) -> None:
        """Tell of what is gone without, once; who can write nonsense can write much of it."""
        if error.message not in self._warned and len(self._warned) < MOST_WARNINGS:
            self._warned.add(error.message)
            self.tell(f"left out: {error.message}")

    def readable(
        self, decode: Callable[[RowMapping], V], rows: Iterable[RowMapping]
    ) -> Iterator[V]:
        """What rows hold; one that cannot be read is left out, and told once."""
        for row in rows:
            try:
                yield decode(row)
            except UnreadableError as error:
                self.left_out(error)

    @property
    def embedded(self) -> bool:
        return self.engine.dialect.name == "sqlite"

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with translated(self.location), self.engine.connect() as plain:
            connection = plain
            if not self.embedded:
                connection = plain.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """Each statement reads by itself, with half the messages: for those that need not agree."""
        with translated(self.location), self.engine.connect() as plain:
            yield plain if self.embedded else plain.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        with translated(self.location), self.engine.connect() as plain:
            connection = plain.execution_options(dsbisect_begin="BEGIN IMMEDIATE")
            with connection.begin():
                yield connection
                # Last: an upgrade waits for those who wrote to a table that it changes.
                self.refuse_upgraded(connection)

    def refuse_upgraded(self, connection: Connection) -> None:
        """UpgradedError when another process has brought the schema to a newer version."""
        if self.schema is None or (now := _version(connection)) == self.schema:
            return
        raise UpgradedError(
            f"the results database {self.location} was upgraded by a newer dsbisect (schema {now};"
            f" this process writes {self.schema}): nothing more is written",
            hint="upgrade dsbisect here too, then start again: every finished sample is stored",
        )


def embedded(connection: Connection) -> bool:
    """Whether the database is a file of this machine."""
    return connection.dialect.name == "sqlite"


def insert_new(connection: Connection, table: Table, row: Mapping[str, object]) -> bool:
    """Insert; False, and nothing is done, if its key exists."""
    insert = sqlite.insert if embedded(connection) else postgresql.insert
    statement = insert(table).values(row).on_conflict_do_nothing()
    # Without the option SQLAlchemy forgets the count of an INSERT on PostgreSQL.
    done = connection.execute(statement, execution_options={"preserve_rowcount": True})
    return done.rowcount == 1


def clock_us(connection: Connection) -> int:
    """The time by one clock for all machines: the database's, where it has one."""
    if embedded(connection):
        return time.time_ns() // 1000
    clock = text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
    return int(connection.execute(clock).scalar_one())


def revision(connection: Connection) -> str | None:
    """The schema's; None where there is none."""
    return _version(connection) if inspect(connection).has_table(VERSION_TABLE) else None


def _version(connection: Connection) -> str | None:
    version = select(column("version_num", Text)).select_from(table(VERSION_TABLE))
    return connection.execute(version).scalar_one_or_none()


def _engine(location: Location, lock_wait_s: float) -> Engine:
    if location.file is not None:
        # isolation_level None: the driver leaves BEGIN to us, so DDL is transactional too.
        arguments: dict[str, object] = {"timeout": lock_wait_s, "isolation_level": None}
        engine = create_engine(
            location.url,
            poolclass=NullPool,
            connect_args=arguments,
            json_deserializer=_json_or_text,
        )
        event.listen(engine, "begin", _begin)
        return engine
    try:
        engine = create_engine(
            location.url,
            poolclass=QueuePool,
            pool_size=KEPT,
            max_overflow=MOST - KEPT,
            pool_pre_ping=True,
            json_deserializer=_json_or_text,
            connect_args=connecting(location, lock_timeout=int(1000 * lock_wait_s)),
        )
    except ImportError:
        raise StoreError(
            f"the results database {location} needs the Python package psycopg",
            hint=install_command("postgresql"),
        ) from None
    kept = weakref.ref(engine)
    os.register_at_fork(after_in_child=lambda: _forget(kept()))
    return engine


def _json_or_text(text: str | bytes) -> object:
    """What a cell holds; as text where it is no JSON, which no value can be made of."""
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return repr(text)[:MOST_NAMED]


def _no_number(name: str) -> NoReturn:
    raise ValueError(name)


def _forget(engine: Engine | None) -> None:
    """A child opens connections of its own; those of its parent are left open there."""
    if engine is not None:
        engine.dispose(close=False)


def _begin(connection: Connection) -> None:
    """A writer locks at the start: a reader that turns writer half-way cannot wait its turn."""
    statement = connection.get_execution_options().get("dsbisect_begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)
