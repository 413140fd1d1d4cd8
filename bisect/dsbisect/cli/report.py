"""`report`: the HTML page and text for what is in the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, ReportFolder, StorePlace
from dsharness.errors import StoreError, UsageError

if TYPE_CHECKING:
    from dsharness.model import Campaign, Finding, Matrix, Value
    from dsharness.model.campaign import FindingKind
    from dsresults.report import ReportData
    from dsresults.store import Store


@dataclass(frozen=True, kw_only=True)
class Answered:
    """One answer as every form of a report needs it."""

    value: Value
    text: str
    folder: str
    write: Callable[[Path], Path]
    data: ReportData | None = None  # of a search


def report(  # noqa: PLR0913 - each is an option
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
    figures: Annotated[
        Path | None,
        typer.Option(
            "--figures", help="Also write the pictures there, as SVG and PNG.", show_default=False
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown instead of text; writes no folder.")
    ] = False,
    issue: Annotated[
        bool,
        typer.Option("--issue", help="Print an issue for upstream, its title first; no folder."),
    ] = False,
    reproducer: Annotated[
        Path | None,
        typer.Option(
            "--reproducer",
            help="Also write data, settings, load and a script there, for ldclt or ldapsearch.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--watch", help="Write the page of a search that runs again and again, until it ends."
        ),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of report.json, nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the report again from stored samples; the last line is its path.

    Example: dsbisect report --output /tmp/report --figures /tmp/figures
    """
    from dsharness.matrix import load_matrix
    from dsresults.report import default_folder
    from dsresults.store import Store

    if schema:
        from dsresults.report.report_data import report_schema

        typer.echo(report_schema(), nl=False)
        return
    checked = load_matrix(matrix)
    if live:
        from dsbisect.live_report import watch

        def folder(of: Campaign) -> Path:
            return output or default_folder(of.series_id)

        tell = partial(typer.echo, err=True)
        typer.echo(watch(store, checked, ids[0] if ids else None, folder, tell))
        return
    with Store.open(store, create=False) as opened:
        ids = [one for each in ids or [] for one in _asked(opened, opened.whole_id(each))]
        found = _answered(opened, checked, ids)
    written = _figures(figures, found) if figures else ()
    if reproducer:
        written += (_reproducer(reproducer, found),)
    if markdown or issue:
        typer.echo(_form(found, issue=issue, as_json=as_json), nl=False)
        return
    path = found.write(output or default_folder(found.folder))
    if as_json:
        typer.echo(found.value.model_dump_json(indent=2))
        return
    typer.echo("\n".join([found.text, *map(str, written), str(path)]))


def _answered(opened: Store, matrix: Matrix, ids: list[str]) -> Answered:
    from dsresults.profile_pair import stored_profiles
    from dsresults.report import render_text, report_data, write_report

    finding = _finding(opened, ids)
    if finding is not None:
        return AGAIN[finding.kind](finding, opened, matrix)
    chosen = _chosen(opened, ids)
    samples, images = opened.measured_in(chosen)
    profiles = stored_profiles(opened, (campaign.id for campaign in chosen))
    data = report_data(matrix, chosen, samples, images, profiles)
    return Answered(
        value=data,
        text=render_text(data),
        folder=chosen[0].series_id,
        write=lambda folder: write_report(folder, data),
        data=data,
    )


def _of_search(found: Answered, option: str) -> ReportData:
    if found.data is None:
        raise UsageError(
            f"{option} is for searches of rows or commits: this answer is of another kind",
            hint="name a campaign; `dsbisect results list` shows them",
        )
    return found.data


def _figures(folder: Path, found: Answered) -> tuple[Path, ...]:
    from dsresults.report.figure_files import write_figures

    return write_figures(folder, _of_search(found, "--figures"))


def _reproducer(folder: Path, found: Answered) -> Path:
    from dsresults.explainers.ldap_reproducer import SCRIPT, reproducer_files
    from dsresults.page_files import write_files
    from dsresults.report.upstream_issue import worse

    comparison, column, _ = worse(_of_search(found, "--reproducer"))
    write_files(folder, reproducer_files(comparison, column))
    (folder / SCRIPT).chmod(0o755)
    return folder / SCRIPT


def _form(found: Answered, *, issue: bool, as_json: bool) -> str:
    from dsresults.report import render_markdown
    from dsresults.report.upstream_issue import upstream_issue

    if not issue:
        return render_markdown(_of_search(found, "--markdown"))
    issue_text = upstream_issue(_of_search(found, "--issue"))
    return issue_text.model_dump_json(indent=2) + "\n" if as_json else issue_text.text


def _commits(finding: Finding, store: Store, matrix: Matrix) -> Answered:
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.commits.commits_text import answer_text, findings_data, report_name
    from dsresults.report import write_report

    outcome = CommitsResult.kept(finding, store)
    data = findings_data(matrix, outcome)
    return Answered(
        value=outcome.findings,
        text=answer_text(outcome.findings),
        folder=report_name(outcome),
        write=lambda folder: write_report(folder, data),
        data=data,
    )


def _validation(finding: Finding, _store: Store, _matrix: Matrix) -> Answered:
    from dsvalidate.answer_files import answer_text, write_texts
    from dsvalidate.check import Validation

    found = Validation.model_validate(finding.value)
    return Answered(
        value=found,
        text=answer_text(found),
        folder=f"{found.row}-validated",
        write=lambda folder: write_texts(folder, found),
    )


def _claims(finding: Finding, _store: Store, _matrix: Matrix) -> Answered:
    from dsresults.compare.claim_outcomes import ClaimsAnswer
    from dsresults.report.claims_page import told, write_claims

    found = ClaimsAnswer.model_validate(finding.value)
    return Answered(
        value=found,
        text="\n".join(told(found)),
        folder="claims",
        write=lambda folder: write_claims(folder, found),
    )


def _explanation(finding: Finding, store: Store, _matrix: Matrix) -> Answered:
    from dsresults.compare.difference_shares import DifferenceShares, told
    from dsresults.profile_pair import stored_profiles
    from dsresults.report.explanation_page import write_explanation

    found = DifferenceShares.model_validate(finding.value)
    profiles = stored_profiles(store, (each.campaign for each in found.workloads))
    return Answered(
        value=found,
        text="\n".join(told(found)),
        folder=f"{found.fast}-{found.slow}-explained",
        write=lambda folder: write_explanation(folder, found, profiles),
    )


AGAIN: dict[FindingKind, Callable[[Finding, Store, Matrix], Answered]] = {
    "commits": _commits,
    "validation": _validation,
    "claims": _claims,
    "explanation": _explanation,
}


def _asked(store: Store, name: str) -> tuple[str, ...]:
    """What an id stands for: profiles are in the report of the campaigns that they are of."""
    finding = store.finding(name)
    return finding.campaigns if finding and finding.kind == "profile" else (name,)


def _finding(store: Store, ids: list[str]) -> Finding | None:
    """What the ids belong to; without any, the newest one if no search of rows ended later."""
    known = store.findings(*AGAIN)
    if ids:
        wanted = set(ids)
        return next(
            (each for each in reversed(known) if wanted <= {each.id, *each.campaigns}), None
        )
    rows = [c.finished_at or "" for c in store.campaigns(finished=True) if c.kind == "rows"]
    newest = known[-1] if known else None
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
