"""The schema of a database: made when it is first opened, safely if several processes do.

A migration brings it from each version to the next. What is older than the first is refused.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import OperationalError

from dsharness.errors import StoreError
from dsharness.process.deadline import Deadline
from dsresults.store.database import VERSION_TABLE, Database, revision
from dsresults.store.driver_errors import ELSEWHERE, translated
from dsresults.store.tables import METADATA

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

SCRIPTS = Path(__file__).with_name("migrations")
OLD_READER = "eec83689"  # the last commit that reads what is older than the first migration
ADVISORY_LOCK = 0x6473_6269_7365_6374  # "dsbisect" in ASCII: one key for every process


def prepare(database: Database, *, scripts: Path = SCRIPTS) -> None:
    """Create or upgrade the schema if need be; StoreError if it is newer or another program's."""
    if database.embedded:
        _use_write_ahead_log(database)
    with database.reading() as connection:
        current = revision(connection) == _newest(scripts)
    if not current:
        _upgrade(database, scripts)
    database.schema = _newest(scripts)


def _upgrade(database: Database, scripts: Path) -> None:
    """Loads alembic, which takes longer than all that most commands ask of a store."""
    from alembic import command  # noqa: PLC0415

    script = _directory(scripts)
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


@cache  # of a process: a folder of migrations is part of a release
def _newest(scripts: Path) -> str:
    """Each migration's file begins with its revision."""
    return max(file.stem[1:5] for file in (scripts / "versions").glob("v*.py"))


def _is_current(connection: Connection, database: Database, script: ScriptDirectory) -> bool:
    current = revision(connection)
    revisions = {migration.revision for migration in script.walk_revisions()}
    if current is None:
        _refuse_foreign(connection, database)
    elif current < min(revisions):
        raise StoreError(
            f"the results database {database.location} is of an older form (schema {current}; this"
            f" dsbisect reads {min(revisions)} and later)",
            hint=f"commit {OLD_READER} of dsbisect reads it: there `dsbisect results export --store"
            " OLD FILE`, then here `dsbisect results import --store NEW FILE`",
        )
    elif current not in revisions:
        raise StoreError(
            f"the results database {database.location} was written by a newer dsbisect"
            f" (schema {current}; this one knows up to {script.get_current_head()})",
            hint=f"upgrade dsbisect, or {ELSEWHERE}",
        )
    return current == script.get_current_head()


def _refuse_foreign(connection: Connection, database: Database) -> None:
    foreign = sorted(set(inspect(connection).get_table_names()) & set(METADATA.tables))
    if foreign:
        raise StoreError(
            f"{database.location} holds another program's tables: {', '.join(foreign)}",
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


@cache
def _directory(scripts: Path) -> ScriptDirectory:
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    return ScriptDirectory.from_config(_config(scripts))


def _config(scripts: Path) -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["version_table"] = VERSION_TABLE
    return config
