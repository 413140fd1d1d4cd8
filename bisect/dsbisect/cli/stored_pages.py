"""`show pages`: reports and watches of the store as pages on the loopback."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, StorePlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsbisect.page_server import ServedPage
    from dsharness.model import Matrix
    from dsresults.store import Store
    from dsresults.store_page import StoredLine
    from dsresults.watch.watch_state import WatchState

PORT = 8389
MOST = 200  # of the newest answers are listed
KINDS = {".html": "text/html", ".json": "application/json", ".md": "text/markdown"}
WATCH = re.compile(r"/watch/(?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,63})/(?P<file>[a-z0-9.-]*)")
REPORT = re.compile(r"/report/(?P<name>[A-Za-z0-9][A-Za-z0-9-]{0,63})/(?P<file>[a-z.]*)")


def pages(
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Of the loopback; 0: any free one.")
    ] = PORT,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Serve the store's reports and watches to a browser on this machine, until Ctrl-C.

    Example: dsbisect show pages --port 8400
    """
    from dsbisect.page_server import PageServer
    from dsharness.errors import ExitCode
    from dsharness.matrix import load_matrix
    from dsresults.store import Store

    checked = load_matrix(matrix)
    with (
        Store.open(store, create=False) as opened,
        PageServer(StoredPages(store=opened, matrix=checked), port) as server,
    ):
        facts = {"store": str(opened), "address": server.address}
        text = f"{opened} is served at {server.address} until Ctrl-C"
        typer.echo(json.dumps(facts) if as_json else text)
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            typer.echo("ended: nothing is served any more", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None


@dataclass(frozen=True, kw_only=True)
class StoredPages:
    """``Pages`` of a store: each is made of what it holds at that moment."""

    store: Store
    matrix: Matrix

    def __call__(self, path: str) -> ServedPage | None:
        """A path is only matched, and leads to no file."""
        if path == "/":
            return _page(self._index())
        if match := WATCH.fullmatch(path):
            return self._watch(match["name"], match["file"])
        if match := REPORT.fullmatch(path):
            return self._report(match["name"], match["file"])
        return None

    def _index(self) -> str:
        from dsresults.page.page_html import html_of
        from dsresults.store_page import store_page

        return html_of(store_page(str(self.store), self._watches(), list(self._answers())))

    def _answers(self) -> Iterator[StoredLine]:
        """The newest; campaigns that an answer rests on are in its report."""
        from dsbisect.cli.stored_answers import ANSWERS
        from dsresults.store_page import StoredLine

        findings = self.store.findings(*ANSWERS, newest=MOST)
        within = {campaign for finding in findings for campaign in finding.campaigns}
        for finding in findings:
            yield StoredLine(finding.id, finding.found_at, finding.title, finding.answer)
        for campaign in self.store.campaigns(finished=True, newest=MOST):
            if campaign.id not in within and campaign.boundary:
                title = f"{campaign.series_id}, {campaign.workload_id}"
                yield StoredLine(
                    campaign.id, campaign.finished_at or "", title, campaign.boundary.summary
                )

    def _watches(self) -> list[WatchState]:
        from dsresults.watch.alarms import alarms_of
        from dsresults.watch.watch_state import watch_state
        from dsresults.watch.watched_series import tips_of, watches_of

        findings = self.store.findings("watched", "alarm")
        alarms = alarms_of(findings)
        return [watch_state(name, tips_of(findings, name), alarms) for name in watches_of(findings)]

    def _watch(self, name: str, file: str) -> ServedPage | None:
        from dsresults.page.page_html import html_of
        from dsresults.watch.watch_page import PAGE, page_names, watch_page

        state = next((watch for watch in self._watches() if watch.id == name), None)
        if state is None:
            return None
        if file == "watch.json":
            return _page(state.model_dump_json(indent=2), KINDS[".json"])
        file = file or PAGE
        if file not in page_names(state):
            return None
        return _page(html_of(watch_page(state, file, reports="/report/")))

    def _report(self, name: str, file: str) -> ServedPage | None:
        from dsbisect.cli.stored_answers import stored_answer
        from dsbisect.page_server import told
        from dsharness.errors import StoreError, UsageError

        try:
            answer = stored_answer(self.store, self.matrix, [name])
        except (StoreError, UsageError) as error:
            return told(HTTPStatus.NOT_FOUND, str(error))
        with tempfile.TemporaryDirectory(prefix="dsbisect-page-") as folder:
            page = answer.write(Path(folder))
            files = {path.name: path for path in page.parent.iterdir()}
            requested = files.get(file or page.name)
            kind = KINDS.get(requested.suffix) if requested else None
            return (
                _page(requested.read_text(encoding="utf-8"), kind) if requested and kind else None
            )


def _page(text: str, kind: str = KINDS[".html"]) -> ServedPage:
    from dsbisect.page_server import ServedPage

    return ServedPage(body=text.encode(), kind=kind)
