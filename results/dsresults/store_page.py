"""What a store holds, as a page that leads to its watches and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dsresults.number_text import utc
from dsresults.page.page_files import page_environment
from dsresults.watch.watch_state import WatchState


class StoredLine(NamedTuple):
    """An answer that a report can be made of."""

    id: str
    at: str
    title: str
    answer: str


def render_store(place: str, watches: Sequence[WatchState], answers: Sequence[StoredLine]) -> str:
    """The whole page as one HTML document; the newest answers come first."""
    environment = page_environment()
    environment.filters.update(utc=utc)
    newest = sorted(answers, key=lambda line: line.at, reverse=True)
    template = environment.get_template("store.html.jinja")
    return template.render(place=place, watches=watches, answers=newest)
