"""`report`: the HTML page and text for what is in the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, ReportFolder, StorePlace
from dsharness.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dsharness.model import Campaign, Finding, Matrix, Value
    from dsresults.store import Store


def report(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Campaigns, or a finding; a campaign of a search over commits stands for the "
            "whole search. Default: the latest answer.",
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
    from dsharness.matrix import load_matrix
    from dsresults.profile_pair import profiles_of
    from dsresults.report import default_folder, render_text, report_data, write_report
    from dsresults.store import Store

    checked = load_matrix(matrix)
    with Store.open(store, create=False) as opened:
        ids = [one for each in ids or [] for one in _asked(opened, opened.whole_id(each))]
        known = opened.findings()
        finding = _finding(opened, known, ids)
        if finding is not None:
            value, text, path = AGAIN[finding.kind](finding, opened, known, checked, output)
            typer.echo(value.model_dump_json(indent=2) if as_json else f"{text}\n{path}")
            return
        chosen = _chosen(opened, ids)
        samples, images = opened.measured_in(chosen)
        profiles = profiles_of(known, (campaign.id for campaign in chosen))
    data = report_data(checked, chosen, samples, images, profiles)
    path = write_report(output or default_folder(chosen[0].series_id), data)
    typer.echo(data.model_dump_json(indent=2) if as_json else f"{render_text(data)}\n{path}")


def _commits(
    finding: Finding, store: Store, known: Sequence[Finding], matrix: Matrix, output: Path | None
) -> tuple[Value, str, Path]:
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.commits.commits_text import answer_text, write_findings

    outcome = CommitsResult.kept(finding, store, known)
    path = write_findings(matrix, outcome, output)
    return outcome.findings, answer_text(outcome.findings), path


def _validation(
    finding: Finding,
    _store: Store,
    _known: Sequence[Finding],
    _matrix: Matrix,
    output: Path | None,
) -> tuple[Value, str, Path]:
    from dsresults.report import default_folder
    from dsvalidate.answer_files import answer_text, write_texts
    from dsvalidate.check import Validation

    found = Validation.model_validate(finding.value)
    path = write_texts(output or default_folder(f"{found.row}-validated"), found)
    return found, answer_text(found), path


def _claims(
    finding: Finding,
    _store: Store,
    _known: Sequence[Finding],
    _matrix: Matrix,
    output: Path | None,
) -> tuple[Value, str, Path]:
    from dsresults.compare.claim_outcomes import ClaimsAnswer
    from dsresults.report import default_folder
    from dsresults.report.claims_page import told, write_claims

    found = ClaimsAnswer.model_validate(finding.value)
    return found, "\n".join(told(found)), write_claims(output or default_folder("claims"), found)


AGAIN = {"commits": _commits, "validation": _validation, "claims": _claims}


def _asked(store: Store, name: str) -> tuple[str, ...]:
    """What an id stands for: profiles are in the report of the campaigns that they are of."""
    finding = store.finding(name)
    return finding.campaigns if finding and finding.kind == "profile" else (name,)


def _finding(store: Store, known: Sequence[Finding], ids: list[str]) -> Finding | None:
    """What the ids belong to; without any, the newest one if no search of rows ended later."""
    found = [each for each in known if each.kind in AGAIN]
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
