"""`show`: the HTML page and text of an answer that is in the store."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, ReportFolder, StorePlace
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.cli.stored_answers import Answered
    from dsharness.model import Campaign
    from dsresults.report import ReportData


def show(  # noqa: PLR0913 - each is an option
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
    svg: Annotated[
        Path | None,
        typer.Option(
            "--svg", help="Also write the answer as one slide, as SVG.", show_default=False
        ),
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option("--png", help="The same as PNG, made by chromium.", show_default=False),
    ] = None,
    dark: Annotated[
        bool, typer.Option("--dark", help="The slide is dark; an SVG else follows its viewer.")
    ] = False,
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
            "--live", help="Write the page of a search that runs again and again, until it ends."
        ),
    ] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of report.json, nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show an answer again from what is stored; with commands below it.

    It writes the page, too: the last line is its path.

    Example: dsbisect show --output /tmp/report --figures /tmp/figures
    """
    from dsbisect.cli.stored_answers import stored_answer
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
        answer = stored_answer(opened, checked, ids or [])
    paths = _figures(figures, answer) if figures else ()
    if svg or png:
        paths += _slide(answer, svg, png, dark=dark)
    if reproducer:
        paths += (_reproducer(reproducer, answer),)
    if markdown or issue:
        typer.echo(_form(answer, issue=issue, as_json=as_json), nl=False)
        return
    path = answer.write(output or default_folder(answer.folder))
    if as_json:
        typer.echo(answer.value.model_dump_json(indent=2))
        return
    typer.echo("\n".join([answer.text, *map(str, paths), str(path)]))


def _of_search(answer: Answered, option: str) -> ReportData:
    if answer.data is None:
        raise UsageError(
            f"{option} is for searches of rows or commits: this answer is of another kind",
            hint="name a campaign; `dsbisect list answers` shows them",
        )
    return answer.data


def _figures(folder: Path, answer: Answered) -> tuple[Path, ...]:
    from dsresults.report.figure_files import write_figures

    return write_figures(folder, _of_search(answer, "--figures"))


def _slide(answer: Answered, svg: Path | None, png: Path | None, *, dark: bool) -> tuple[Path, ...]:
    from dsresults.report.figure_files import write_slide

    write_slide(_of_search(answer, "--svg" if svg else "--png"), svg, png, dark=dark)
    return tuple(filter(None, (svg, png)))


def _reproducer(folder: Path, answer: Answered) -> Path:
    from dsresults.explainers.ldap_reproducer import SCRIPT, reproducer_files
    from dsresults.page.page_files import write_files
    from dsresults.report.found_step import worse

    step = worse(_of_search(answer, "--reproducer"))
    write_files(folder, reproducer_files(step.comparison, step.column))
    (folder / SCRIPT).chmod(0o755)
    return folder / SCRIPT


def _form(answer: Answered, *, issue: bool, as_json: bool) -> str:
    from dsresults.report import render_markdown
    from dsresults.report.upstream_issue import upstream_issue

    if not issue:
        return render_markdown(_of_search(answer, "--markdown"))
    issue_text = upstream_issue(_of_search(answer, "--issue"))
    return issue_text.model_dump_json(indent=2) + "\n" if as_json else issue_text.text
