"""What a driver of a database says, as the lab's own errors: what it means and what to do next."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from dsharness.errors import DiskFullError, DsbisectError, StoreError, UpgradedError
from dsresults.store.location import Location

ELSEWHERE = "name another one with --store, $DSBISECT_STORE or --on"

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
    "42501": "refused",
    "42703": "changed",  # no such column
    "42P01": "changed",  # no such table
}


# What a meaning is for the user: the error, what it says and what to do next.
MESSAGES: dict[str, tuple[type[DsbisectError], str, str]] = {
    "full": (
        DiskFullError,
        "no space left for the results database {place}",
        "free some space (`dsbisect clean --images`) and start again: it resumes",
    ),
    "locked": (
        StoreError,
        "the results database {place} stayed locked by another process",
        "end the process that holds it (fuser, lsof; pg_locks), then start again",
    ),
    "damaged": (
        StoreError,
        "{place} is not a results database, or it is damaged",
        f"move it away and `dsbisect results import` your last export, or {ELSEWHERE}",
    ),
    "forbidden": (
        StoreError,
        "the results database {place} cannot be opened for writing",
        f"check that its folder exists and that you may write to it, or {ELSEWHERE}",
    ),
    "refused": (
        StoreError,
        "the results database {place} does not let this role do that: {driver}",
        "take a role that may; one of a machine has one row (`dsbisect machines forget` frees it)",
    ),
    "changed": (
        UpgradedError,
        "the results database {place} is not as this dsbisect knows it: {driver}",
        "it was changed meanwhile: start again, with the dsbisect that changed it",
    ),
    "clear": (
        StoreError,
        "the results database {place} does not encrypt: {driver}",
        "turn TLS on there (`ssl = on`), or add ?sslmode=disable where nobody else can listen",
    ),
    "unreachable": (
        StoreError,
        "the results database {place} cannot be reached: {driver}",
        f"check the server, the address and the password, or {ELSEWHERE}",
    ),
    "": (
        StoreError,
        "the results database {place} refused: {driver}",
        f"check the database, or {ELSEWHERE}",
    ),
}


@contextmanager
def translated(location: Location) -> Iterator[None]:
    """Turn a driver's error inside the block into StoreError or DiskFullError."""
    try:
        yield
    except DBAPIError as error:
        raise _store_error(error, location) from error


def _store_error(error: DBAPIError, location: Location) -> DsbisectError:
    kind, says, hint = MESSAGES[_meaning(error, location)]
    return kind(says.format(place=location, driver=_message(error, location)), hint=hint)


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
    if "does not support SSL" in str(cause):  # libpq has no code for it
        return "clear"
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
