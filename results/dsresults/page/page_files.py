"""An answer as files: its page and its figures, each whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from dsharness.errors import DsbisectError, UsageError
from dsharness.process.command import atomic_write, disk_error
from dsresults.page.page import Answer, Page
from dsresults.page.page_html import html_of


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by their names; UsageError for a folder that cannot hold them."""
    with _told(folder):
        for name, text in files.items():
            atomic_write(folder / name, text)


def check_folder(folder: Path) -> None:
    """Find out whether it can be made and written to, and leave nothing; UsageError if not."""
    with _told(folder):
        places = (folder.absolute(), *folder.absolute().parents)
        existing = next(place for place in places if os.path.lexists(place))
        with tempfile.TemporaryFile(dir=existing):
            pass


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_error(error, folder) from error
        raise _unwritable(folder, error) from error


def write_answer(folder: Path, name: str, answer: Answer) -> Path:
    """Write NAME.json and NAME.html, each completely or not at all; return the page's path."""
    return write_page(folder, name, answer.page(), answer)


def write_page(
    folder: Path,
    name: str,
    page: Page,
    answer: Answer,
    further: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Write an answer with a page that says more than its own."""
    path = folder / f"{name}.html"
    html = html_of(page)  # before any file: a page that cannot be drawn leaves none
    facts = answer.model_dump_json(indent=2) + "\n"
    write_files(folder, {f"{name}.json": facts, path.name: html, **further})
    return path


def _unwritable(folder: Path, error: OSError) -> DsbisectError:
    return UsageError(
        f"the report cannot be written to {folder}: {error.strerror or error}",
        hint="name a folder that you may write to",
    )
