"""`report`: the HTML page and text for what is in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, ReportFolder, StorePlace
from dsharness.errors import StoreError

if TYPE_CHECKING:
    from dsharness.model import Campaign, Finding
    from dsresults.store import Store


def report(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Campaigns; one of a search over commits stands for the whole search. "
            "Default: the latest answer.",
        ),
    ] = None,
    *,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    as_json: AsJson = False,
) -> None:
    """Write the report again from stored samples; the last line is its path.

    Example: dsbisect report --output /tmp/report
    """
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.commits.commits_text import answer_text, write_findings
    from dsharness.matrix import load_matrix
    from dsresults.report import default_folder, render_text, report_data, write_report
    from dsresults.store import Store

    checked = load_matrix(matrix)
    with Store.open(store, create=False) as opened:
        finding = _finding(opened, ids or [])
        if finding is not None:
            outcome = CommitsResult.kept(finding, opened)
            path = write_findings(checked, outcome, output)
            found = outcome.findings
            text = found.model_dump_json(indent=2) if as_json else f"{answer_text(found)}\n{path}"
            typer.echo(text)
            return
        chosen = _chosen(opened, ids or [])
        samples, images = opened.measured_in(chosen)
    data = report_data(checked, chosen, samples, images)
    path = write_report(output or default_folder(chosen[0].series_id), data)
    typer.echo(data.model_dump_json(indent=2) if as_json else f"{render_text(data)}\n{path}")


def _finding(store: Store, ids: list[str]) -> Finding | None:
    """What the ids belong to; without any, the newest one if no search of rows ended later."""
    found = store.findings()
    if ids:
        wanted = set(ids)
        return next(
            (each for each in reversed(found) if wanted <= {each.id, *each.campaigns}), None
        )
    rows = [c.finished_at or "" for c in store.campaigns(finished=True) if c.kind == "rows"]
    newest = found[-1] if found else None
    return newest if newest is not None and newest.found_at > max(rows, default="") else None


def _chosen(store: Store, ids: list[str]) -> list[Campaign]:
    """The campaigns named, or the newest answer to each question of the newest series."""
    if ids:
        found = [(name, store.campaign(name)) for name in ids]
        for name, campaign in found:
            if campaign is None or campaign.boundary is None:
                raise StoreError(
                    f"no finished campaign {name} in {store}",
                    hint="`dsbisect results list` shows them",
                )
        return [campaign for _, campaign in found if campaign is not None]
    finished = [c for c in store.campaigns(finished=True) if c.kind == "rows"]
    if not finished:
        raise StoreError(
            f"{store} holds no finished campaign", hint="run `dsbisect reproduce` first"
        )
    series = finished[-1].series_id
    newest = {
        (c.workload_id, c.settings_id, c.boundary.line if c.boundary else ()): c
        for c in finished
        if c.series_id == series
    }
    return list(newest.values())
