"""Bring a database to the schema of this version, safely when several processes open it first."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from dsharness.errors import StoreError
from dsharness.process.deadline import Deadline
from dsresults.store.database import Database
from dsresults.store.database_errors import ELSEWHERE, translated
from dsresults.store.tables import METADATA

SCRIPTS = Path(__file__).with_name("migrations")
VERSION_TABLE = "dsbisect_schema"
ADVISORY_LOCK = 0x6473_6269_7365_6374  # "dsbisect" in ASCII: one key for every process


def prepare(database: Database, *, scripts: Path = SCRIPTS) -> None:
    """Create or upgrade the schema if need be; StoreError if it is newer or another program's."""
    script = _directory(scripts)
    if database.embedded:
        _use_write_ahead_log(database)
    with database.reading() as connection:
        if _is_current(connection, database, script):
            return
    with database.writing() as connection:
        if not database.embedded:
            connection.execute(text(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
        # Checked again under the lock: another process may have done it meanwhile.
        if not _is_current(connection, database, script):
            config = _config(scripts)
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _is_current(connection: Connection, database: Database, script: ScriptDirectory) -> bool:
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    revision = context.get_current_revision()
    known = {known.revision for known in script.walk_revisions()}
    if revision is None:
        _refuse_foreign(connection, database)
    elif revision not in known:
        raise StoreError(
            f"the results database {database.location} was written by a newer dsbisect"
            f" (schema {revision}; this one knows up to {script.get_current_head()})",
            hint=f"upgrade dsbisect, or {ELSEWHERE}",
        )
    return revision == script.get_current_head()


def _refuse_foreign(connection: Connection, database: Database) -> None:
    taken = sorted(set(inspect(connection).get_table_names()) & set(METADATA.tables))
    if taken:
        raise StoreError(
            f"{database.location} holds another program's tables: {', '.join(taken)}",
            hint=f"give dsbisect its own database: {ELSEWHERE}",
        )


def _use_write_ahead_log(database: Database) -> None:
    """Let readers and a writer work at once; the setting stays in the file.

    SQLite does not honour the busy timeout for this one statement, hence the loop.
    """
    deadline = Deadline.after(database.lock_wait_s)
    with translated(database.location), database.engine.connect() as plain:
        connection = plain.execution_options(dsbisect_begin="")  # not allowed in a transaction
        while connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
            try:
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
            except OperationalError as error:
                if "locked" not in str(error.orig) or deadline.passed:
                    raise
                time.sleep(0.02)
            else:
                return  # a file system without shared memory keeps its own journal mode


@cache  # of a process: a folder of migrations is part of a release
def _directory(scripts: Path) -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(scripts))


def _config(scripts: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["version_table"] = VERSION_TABLE
    return config
