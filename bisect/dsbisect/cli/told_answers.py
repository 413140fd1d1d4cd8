"""Answers: printed, reported, and as an exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dsharness.errors import ExitCode, StoppedError

if TYPE_CHECKING:
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.rows_study import Findings, RowsRequest
    from dsbisect.study_answers import StudyAnswer
    from dsharness.model import Campaign, Matrix
    from dsresults.page.page import Answer
    from dsresults.profile_pair import ProfilePair


def tell_answer(answer: Answer, page: Path, *, as_json: bool) -> None:
    """Print it, as text with the page's path or as JSON; exit with 20 if it is inconclusive."""
    from dsresults.page.page_text import text_of

    told = answer.model_dump_json(indent=2) if as_json else f"{text_of(answer.page())}\n\n{page}"
    typer.echo(told)
    if answer.inconclusive:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def tell_commits(
    matrix: Matrix, outcome: CommitsResult, output: Path | None, *, as_json: bool
) -> None:
    """Print and report what was found; an exit code of its own where nothing is proved."""
    from dsbisect.commits.commits_text import answer_text, write_findings

    path = write_findings(matrix, outcome, output)
    findings = outcome.findings
    text = findings.model_dump_json(indent=2) if as_json else f"{answer_text(findings)}\n{path}"
    typer.echo(text)
    tell_doubted(outcome.profiles)
    contradicted = any(culprit.proved is False for culprit in findings.culprits)
    if contradicted or findings.whole.direction == "unknown":
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def tell_kept(
    kept: StudyAnswer,
    output: Path | None,
    *,
    as_json: bool,
    if_no: Callable[[StudyAnswer], None] = lambda _: None,
) -> None:
    """Write the page and print the answer; exit with 20 if it is inconclusive, 1 if it is no.

    ``if_no`` is done before that.
    """
    from dsresults.report.report_source import default_folder

    page = kept.write(output or default_folder(kept.folder))
    tell_answer(kept.answer, page, as_json=as_json)
    if kept.study.refuses(kept.answer):
        if_no(kept)
        raise typer.Exit(ExitCode.NO)


def tell_findings(
    request: RowsRequest,
    findings: Findings,
    output: Path | None,
    *,
    as_json: bool,
    every: bool,
    command: str = "",
) -> None:
    """Print and report what was found; an exit code of its own when nothing was."""
    try:
        _tell(request, findings, output, as_json=as_json, command=command)
    except KeyboardInterrupt as error:
        raise StoppedError(
            "interrupted while the report was written; every sample and answer is stored",
            hint="`dsbisect show` writes it again",
        ) from error
    if (request.good or request.bad) and _improved(findings):
        typer.echo("note: good is the slow end: are --good and --bad swapped?", err=True)
    if not every and any(c.boundary and c.boundary.also for c in findings.campaigns):
        typer.echo("note: a second step is possible: `--all` looks for it", err=True)
    tell_unanswered(findings.campaigns)
    tell_doubted(findings.profiles)


def _tell(
    request: RowsRequest, findings: Findings, output: Path | None, *, as_json: bool, command: str
) -> None:
    from dsresults.report import default_folder, render_text, report_data, write_report

    known = (findings.campaigns, findings.samples, findings.images, findings.profiles)
    data = report_data(request.matrix, *known)
    if command:
        data = data.asked_by(command)
    path = write_report(output or default_folder(request.series.id), data)
    typer.echo(data.model_dump_json(indent=2) if as_json else f"{render_text(data)}\n{path}")


def _improved(findings: Findings) -> bool:
    return any(c.boundary and c.boundary.direction == "faster" for c in findings.campaigns)


def tell_doubted(profiles: Sequence[ProfilePair]) -> None:
    """Print which answers a second tool does not confirm; an exit code of its own for them."""
    from dsresults.profile_pair import doubted

    doubts = doubted(profiles)
    for doubt in doubts:
        typer.echo(doubt, err=True)
    if doubts:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def tell_unanswered(campaigns: Sequence[Campaign]) -> None:
    """Print which questions have no answer; an exit code of its own when none has."""
    open_ = [campaign for campaign in campaigns if not _answered(campaign)]
    for campaign in open_:
        summary = campaign.boundary.summary if campaign.boundary else "it was not measured"
        typer.echo(f"no answer for {campaign.workload_id}: {summary}", err=True)
    if len(open_) == len(campaigns):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _answered(campaign: Campaign) -> bool:
    return campaign.boundary is not None and campaign.boundary.direction != "unknown"
