"""The report's files."""

from __future__ import annotations

import errno
from datetime import UTC, datetime
from pathlib import Path

from dsharness.errors import DsbisectError, UsageError
from dsharness.paths import data_home
from dsharness.process.command import atomic_write, disk_error
from dsresults.report.html_page import render_html
from dsresults.report.report_data import ReportData

HTML = "report.html"
JSON = "report.json"


def default_folder(series_id: str, *, now: datetime | None = None) -> Path:
    """runs/<UTC time>-<series> in results/ here, otherwise where the store is by default."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    safe = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in series_id)
    name = f"{moment:%Y%m%dT%H%M%SZ}-{safe[:80]}"
    if (here := Path.cwd() / "results").is_dir():
        return here / "runs" / name
    return data_home() / "runs" / name


def write_report(folder: Path, data: ReportData) -> Path:
    """Write report.json and report.html, each completely or not at all; the page's path."""
    page = folder / HTML
    html = render_html(data)  # before any file: a report that cannot be drawn leaves none
    try:
        atomic_write(folder / JSON, data.model_dump_json(indent=2) + "\n")
        atomic_write(page, html)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise disk_error(error, folder) from error
        raise _unwritable(folder, error) from error
    return page


def _unwritable(folder: Path, error: OSError) -> DsbisectError:
    return UsageError(
        f"the report cannot be written to {folder}: {error.strerror or error}",
        hint="name a folder that you may write to",
    )
