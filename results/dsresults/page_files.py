"""What every page shares: its templates, moments as text, and files that are written whole."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from dsharness.errors import DsbisectError, UsageError
from dsharness.model import Value
from dsharness.process.command import atomic_write, disk_error


def page_environment(*packages: str) -> Environment:
    """Renders the templates of these packages, and this one's: every text escaped, none missing."""
    loaders = [PackageLoader(package) for package in (*packages, "dsresults")]
    return Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def utc(moment: str | None) -> str:
    """A stored moment as UTC to the second; anything else is shown unchanged."""
    if not moment:
        return ""
    try:
        parsed = datetime.fromisoformat(moment)
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        shown = aware.astimezone(UTC)  # no UTC for a first or last hour of all time
    except (ValueError, OverflowError):
        return moment
    return f"{shown.replace(tzinfo=None).isoformat(sep=' ', timespec='seconds')} UTC"


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their names; UsageError for a folder that cannot hold them."""
    with _told(folder):
        for name, text in files.items():
            atomic_write(folder / name, text)


def check_folder(folder: Path) -> None:
    """Find out whether it can be made and written to, and leave nothing; UsageError if not."""
    with _told(folder):
        places = (folder.absolute(), *folder.absolute().parents)
        there = next(place for place in places if os.path.lexists(place))
        with tempfile.TemporaryFile(dir=there):
            pass


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_error(error, folder) from error
        raise _unwritable(folder, error) from error


def write_page(folder: Path, name: str, html: str, found: Value) -> Path:
    """Write a page, and what it shows as JSON next to it, each whole or not at all; its path."""
    page = folder / f"{name}.html"
    write_files(folder, {f"{name}.json": found.model_dump_json(indent=2) + "\n", page.name: html})
    return page


def _unwritable(folder: Path, error: OSError) -> DsbisectError:
    return UsageError(
        f"the report cannot be written to {folder}: {error.strerror or error}",
        hint="name a folder that you may write to",
    )
