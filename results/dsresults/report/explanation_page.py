"""An attributed difference as a page: shares, what was measured, what differs, where time goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dsresults.compare.difference_shares import DifferenceShares, answers, spelled
from dsresults.page.page_files import write_files
from dsresults.profile_pair import ProfilePair
from dsresults.report.html_page import report_environment


def render_explanation(found: DifferenceShares, profiles: Sequence[ProfilePair]) -> str:
    """The whole page as one HTML document."""
    page = report_environment().get_template("explanation.html.jinja")
    shown = {"profiles": profiles}
    return page.render(found=found, data=shown, answers=answers(found), spelled=spelled)


def write_explanation(
    folder: Path, found: DifferenceShares, profiles: Sequence[ProfilePair]
) -> Path:
    """Write explanation.json and explanation.html, completely or not at all; the page's path."""
    html, page = render_explanation(found, profiles), folder / "explanation.html"
    texts = {"explanation.json": found.model_dump_json(indent=2) + "\n", page.name: html}
    write_files(folder, texts)
    return page
