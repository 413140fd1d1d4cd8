"""What a store holds, as a page that leads to its watches and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dsresults.number_text import utc
from dsresults.page.page import Bullets, Page, Section, Table, link
from dsresults.watch.watch_state import WatchState


class StoredLine(NamedTuple):
    """An answer that a report can be made of."""

    id: str
    at: str
    title: str
    answer: str


def store_page(place: str, watches: Sequence[WatchState], answers: Sequence[StoredLine]) -> Page:
    """Return the page; the newest answers come first."""
    led = [(link(watch.id, f"/watch/{watch.id}/"), f": {watch.answer}") for watch in watches]
    rows = [
        (link(line.title or line.id, f"/report/{line.id}/"), line.answer, utc(line.at))
        for line in sorted(answers, key=lambda line: line.at, reverse=True)
    ]
    table = Table(
        kind="candidates watched",
        caption="The newest first.",
        columns=("Asked", "Answer", "When"),
        rows=rows,
    )
    return Page(
        title=place,
        heading="What was measured",
        about=(place,),
        parts=(
            *(
                [Section(title="Watches", parts=[Bullets(items=led, kind="findings")])]
                if led
                else []
            ),
            Section(title="Answers", parts=[table] if rows else ["Nothing yet."]),
        ),
    )
