"""A database driver's errors as the lab's own errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from dsharness.errors import DiskFullError, DsbisectError, StoreError
from dsresults.store.location import Location

ELSEWHERE = "name another one with --store or $DSBISECT_STORE"

# The start of SQLite's error name, then PostgreSQL's SQLSTATE -> its meaning here.
SQLITE_MEANINGS = {
    "SQLITE_FULL": "full",
    "SQLITE_BUSY": "locked",
    "SQLITE_LOCKED": "locked",
    "SQLITE_NOTADB": "damaged",
    "SQLITE_CORRUPT": "damaged",
    "SQLITE_READONLY": "forbidden",
    "SQLITE_CANTOPEN": "forbidden",
    "SQLITE_PERM": "forbidden",
}
POSTGRESQL_MEANINGS = {
    "53100": "full",
    "55P03": "locked",
    "25006": "forbidden",
    "42501": "forbidden",
}


@contextmanager
def translated(location: Location) -> Iterator[None]:
    """Turn a driver's error inside the block into StoreError or DiskFullError."""
    try:
        yield
    except DBAPIError as error:
        raise _store_error(error, location) from error


def _store_error(error: DBAPIError, location: Location) -> DsbisectError:
    match _meaning(error, location):
        case "full":
            return DiskFullError(
                f"no space left for the results database {location}",
                hint="free some space (`dsbisect clean --images`) and start again: it resumes",
            )
        case "locked":
            return StoreError(
                f"the results database {location} stayed locked by another process",
                hint="end the process that holds it (fuser, lsof; pg_locks), then start again",
            )
        case "damaged":
            return StoreError(
                f"{location} is not a results database, or it is damaged",
                hint=f"move it away and `dsbisect results import` your last export, or {ELSEWHERE}",
            )
        case "forbidden":
            return StoreError(
                f"the results database {location} cannot be opened for writing",
                hint=f"check that its folder exists and that you may write to it, or {ELSEWHERE}",
            )
        case "unreachable":
            return StoreError(
                f"the results database {location} cannot be reached: {_message(error, location)}",
                hint=f"check the server, the address and the password, or {ELSEWHERE}",
            )
        case _:
            return StoreError(
                f"the results database {location} refused: {_message(error, location)}",
                hint=f"check the database, or {ELSEWHERE}",
            )


def _meaning(error: DBAPIError, location: Location) -> str:
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        name = str(getattr(cause, "sqlite_errorname", ""))
        if name.startswith("SQLITE_IOERR") and _nothing_free(location.file):
            return "full"  # a full disk also shows as a failed write to the -shm file
        return next(
            (SQLITE_MEANINGS[start] for start in SQLITE_MEANINGS if name.startswith(start)), ""
        )
    state = getattr(cause, "sqlstate", None)
    if state is None or str(state).startswith(("08", "28", "3D", "57P")):
        return "unreachable"
    return POSTGRESQL_MEANINGS.get(str(state), "")


def _nothing_free(file: Path | None) -> bool:
    if file is None:
        return False
    try:
        return os.statvfs(file.parent).f_bavail == 0
    except OSError:
        return False


def _message(error: DBAPIError, location: Location) -> str:
    """The driver's message on one line, without secrets of the URL."""
    text = " ".join(str(error.orig).split())
    for secret in location.secrets:
        text = text.replace(secret, "***")
    return text
