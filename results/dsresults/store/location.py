"""Where the store is: a file for one person, a PostgreSQL URL for a team."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from dsharness.errors import DiskFullError, StoreError
from dsharness.paths import data_home
from dsharness.process.command import disk_error

FILE_NAME = "dsbisect.db"
DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}
SECRET_PARAMETERS = frozenset({"password", "sslpassword"})
FORMS = "a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True, kw_only=True)
class Location:
    """A database, and its name without the password."""

    url: URL

    @property
    def file(self) -> Path | None:
        """The database file; None for a server."""
        if self.url.get_backend_name() != "sqlite" or not self.url.database:
            return None
        return Path(self.url.database)

    @property
    def secrets(self) -> tuple[str, ...]:
        parameters = [self.url.query.get(name) for name in SECRET_PARAMETERS]
        texts = [self.url.password, *(value for value in parameters if isinstance(value, str))]
        return tuple(text for text in texts if text)

    def __str__(self) -> str:
        if self.file is not None:
            return str(self.file)
        shown_url = self.url.set(drivername="postgresql").difference_update_query(SECRET_PARAMETERS)
        return shown_url.render_as_string(hide_password=True)


def default_location() -> str:
    """$DSBISECT_STORE, else the user's data folder: the same wherever one stands."""
    return os.environ.get("DSBISECT_STORE") or str(data_home() / FILE_NAME)


def locate(url: str | Path | None) -> Location:
    """Read a path or URL; StoreError when it is neither SQLite nor PostgreSQL."""
    text = str(url) if url else default_location()
    if "://" in text:
        location = Location(url=_read(text))
    else:
        path = str(Path(text).expanduser())
        location = Location(url=URL.create("sqlite+pysqlite", database=path))
    embedded = location.url.get_backend_name() == "sqlite"
    if embedded and location.url.database in {None, "", ":memory:"}:
        raise StoreError("a store in memory would lose everything", hint=f"use {FORMS}")
    return location


def ready_file(file: Path, *, create: bool, make_folder: bool) -> None:
    """Make the file, for its owner only; sqlite gives its other files the same rights.

    Only the default's folder is made: a named folder that is missing is a typo.
    """
    if not create and not file.exists():
        raise StoreError(
            f"there is no results database {file}",
            hint="`dsbisect reproduce` makes one, or name another with --store",
        )
    if make_folder:
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            full = disk_error(error, file.parent)
            raise (
                full
                if isinstance(full, DiskFullError)
                else StoreError(
                    f"the folder {file.parent} cannot be made: {error.strerror}",
                    hint="name another results database with --store or $DSBISECT_STORE",
                )
            ) from error
    if not file.parent.is_dir():
        raise StoreError(
            f"the folder of the results database {file} does not exist",
            hint=f"mkdir -p {file.parent}, or name another with --store",
        )
    if create:
        with contextlib.suppress(OSError):  # it exists, or opening it gives a better error
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _read(text: str) -> URL:
    scheme = text.partition("://")[0]
    if scheme not in DRIVERS:
        raise StoreError(f"the store cannot be kept in {scheme!r}", hint=f"use {FORMS}")
    try:
        url = make_url(text).set(drivername=DRIVERS[scheme])
    except (ArgumentError, ValueError):
        raise _unreadable(scheme) from None  # the cause would quote the URL, password and all
    if "@" in (url.host or ""):
        raise _unreadable(scheme)
    return url


def _unreadable(scheme: str) -> StoreError:
    return StoreError(
        f"the store's {scheme} URL cannot be read",
        hint=f"use {FORMS}; write @ : / in a password as %40 %3A %2F",
    )
