"""Every access to the database: a connection for each transaction, closed with it.

There is no pool, so no connection gets stale in a long campaign or is shared over a fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, NullPool, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite

from dsharness.errors import StoreError
from dsresults.store.database_errors import translated
from dsresults.store.location import Location

LOCK_WAIT_S = 30.0
CONNECT_WAIT_S = 10


class Database:
    """Reads from one snapshot, writes all or nothing, waits for others a limited time."""

    def __init__(self, location: Location, *, lock_wait_s: float = LOCK_WAIT_S) -> None:
        self.location = location
        self.lock_wait_s = lock_wait_s
        self.engine = _engine(location, lock_wait_s)

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
    def writing(self) -> Iterator[Connection]:
        with translated(self.location), self.engine.connect() as plain:
            connection = plain.execution_options(dsbisect_begin="BEGIN IMMEDIATE")
            with connection.begin():
                if not self.embedded:
                    wait_ms = int(self.lock_wait_s * 1000)
                    connection.execute(text(f"SET LOCAL lock_timeout = {wait_ms}"))
                yield connection

    def insert_new(self, connection: Connection, table: Table, row: Mapping[str, object]) -> bool:
        """Insert; False, and nothing is done, if the id exists."""
        insert = sqlite.insert if self.embedded else postgresql.insert
        statement = insert(table).values(row).on_conflict_do_nothing(index_elements=["id"])
        # Without the option SQLAlchemy forgets the count of an INSERT on PostgreSQL.
        done = connection.execute(statement, execution_options={"preserve_rowcount": True})
        return done.rowcount == 1


def _engine(location: Location, lock_wait_s: float) -> Engine:
    if location.file is not None:
        # isolation_level None: the driver leaves BEGIN to us, so DDL is transactional too.
        arguments: dict[str, object] = {"timeout": lock_wait_s, "isolation_level": None}
    else:
        arguments = {"connect_timeout": CONNECT_WAIT_S}
    try:
        engine = create_engine(location.url, poolclass=NullPool, connect_args=arguments)
    except ImportError:
        raise StoreError(
            f"the results database {location} needs the Python package psycopg",
            hint="pip install 'dsbisect[postgresql]'",
        ) from None
    if location.file is not None:
        event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    """A writer locks at the start: a reader that turns writer half-way cannot wait its turn."""
    statement = connection.get_execution_options().get("dsbisect_begin", "BEGIN")
    if statement:
        connection.exec_driver_sql(statement)
