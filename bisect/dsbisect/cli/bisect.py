"""`bisect rows` and `bisect commits`: find where fast turns slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    Edits,
    EventLines,
    EveryStep,
    Expected,
    Inside,
    Keep,
    Level,
    MatrixFile,
    MaxBuilds,
    MaxHours,
    MaxRuns,
    MetricName,
    OutsideMatrix,
    Patches,
    Profiled,
    Relock,
    ReportFolder,
    SettingsId,
    Smallest,
    StorePlace,
    Toolchain,
    WorkloadId,
    WorkloadIds,
    outside,
)  # fmt: skip
from dsbisect.search_options import SearchOptions
from dsharness.errors import ExitCode, StoppedError, UsageError

if TYPE_CHECKING:
    from dsbisect.rows_study import Findings, RowsRequest
    from dsharness.model import Campaign

app = typer.Typer(
    no_args_is_help=True, help="Find where fast turns slow: among rows, or among commits."
)

SeriesId = Annotated[
    str | None, typer.Option("--series", help="The series to search. Default: the matrix's.")
]
Good = Annotated[str | None, typer.Option("--good", help="Row to start at; default: the first.")]
Bad = Annotated[str | None, typer.Option("--bad", help="Row to end at; default: the last.")]


@app.command("rows")
def bisect_rows(  # noqa: PLR0913 - each is an option
    *,
    series: SeriesId = None,
    good: Good = None,
    bad: Bad = None,
    workload: WorkloadIds = None,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    keep: Keep = False,
    metric: MetricName = DEFAULT_METRIC,
    level: Level = SearchOptions.level,
    max_runs: MaxRuns = SearchOptions.max_runs,
    max_builds: MaxBuilds = None,
    max_hours: MaxHours = None,
    smallest: Smallest = None,
    expected: Expected = None,
    inside: Inside = 0,
    every: EveryStep = False,
    profile: Profiled = False,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="URL",
            help="Have it measured by the workers of this PostgreSQL (`dsbisect worker`).",
        ),
    ] = "",
    machines: Annotated[
        int, typer.Option("--machines", help="With --on: as many machines at most.")
    ] = 4,
    class_name: Annotated[
        str, typer.Option("--class", help="With --on: machines of this class. Default: the most.")
    ] = "",
    events: EventLines = False,
    as_json: AsJson = False,
) -> None:
    """Find where fast turns slow along a series of rows.

    Example: dsbisect bisect rows --series debian --good debian-11 --bad debian-13
    --workload bind-one
    """
    from dsbisect.rows_study import RowsRequest
    from dsharness.matrix import find_series, find_settings, find_workload, load_matrix
    from dsharness.matrix.series_graph import chains
    from dsharness.measure.metrics import find_metric
    from dslab.lab_conditions import default_workloads

    decider = find_metric(metric).name
    options = SearchOptions(
        level=level, max_runs=max_runs, max_builds=max_builds,
        max_hours=max_hours, smallest_pct=smallest,
        expected_pct=expected, inside=inside, every=every,
    )  # fmt: skip
    checked = load_matrix(matrix)
    searched = find_series(checked, series or checked.defaults.series)
    named = {row for line in chains(searched) for row in line}
    request = RowsRequest(
        matrix=checked,
        series=searched,
        workloads=tuple(find_workload(checked, name) for name in workload or ())
        or default_workloads(checked, (row.system for row in checked.rows if row.id in named)),
        settings=find_settings(checked, settings_id),
        metric=decider,
        good=good,
        bad=bad,
        relock=relock,
        keep=keep,
        profile=profile,
    )
    if on:
        from dsbisect.cli.machines import shared_study

        if store:
            raise UsageError("--store and --on: two databases", hint="leave out --store")
        shared_study(
            request, options, output, on=on, machines=machines, class_name=class_name,
            events=events, as_json=as_json,
        )  # fmt: skip
        return
    study(request, store, output, as_json=as_json, options=options, events=events)


def study(
    request: RowsRequest,
    store_place: str | None,
    output: Path | None,
    *,
    as_json: bool,
    command: str = "",
    options: SearchOptions | None = None,
    events: bool = False,
) -> None:
    """Run a search and print its answer; an exit code of its own when there is none."""
    from dsbisect.cli.search_progress import Events, Watch
    from dsbisect.rows_study import run_study
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    # A wrong --good or --bad, a row that can never be built: reported before anything is started.
    named = {name for line in request.lines for name in line}
    check_rows(request.matrix, (row for row in request.matrix.rows if row.id in named))
    engine = detect()
    with Store.open(store_place) as store, Events() if events else Watch() as watch:
        findings = run_study(request, engine=engine, store=store, watcher=watch, options=options)
    tell_findings(request, findings, output, as_json=as_json, command=command)


def tell_findings(
    request: RowsRequest,
    findings: Findings,
    output: Path | None,
    *,
    as_json: bool,
    command: str = "",
) -> None:
    """Print and report what was found; an exit code of its own when nothing was."""
    try:
        _tell(request, findings, output, as_json=as_json, command=command)
    except KeyboardInterrupt as error:
        raise StoppedError(
            "interrupted while the report was written; every sample and answer is stored",
            hint="`dsbisect report` writes it again",
        ) from error
    if (request.good or request.bad) and _improved(findings):
        typer.echo("note: good is the slow end: are --good and --bad swapped?", err=True)
    tell_unanswered(findings.campaigns)


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


Repo = Annotated[
    str, typer.Option("--repo", help="Checkout, bare repository or URL; it is only read.")
]


@app.command("commits")
def bisect_commits(  # noqa: PLR0913 - each is an option
    between: Annotated[
        str | None,
        typer.Argument(
            metavar="GOOD..BAD", help="Both ends as one word, instead of --good and --bad."
        ),
    ] = None,
    *,
    repo: Repo,
    good: Annotated[
        str | None, typer.Option("--good", help="A revision that is fast.", show_default=False)
    ] = None,
    bad: Annotated[
        str | None,
        typer.Option("--bad", help="A revision that is slow, later or on another branch."),
    ] = None,
    workload: WorkloadId = None,
    settings_id: SettingsId = "default",
    first_parent: Annotated[
        bool,
        typer.Option(
            "--first-parent", help="Treat a merge as one commit; do not look into what it merged."
        ),
    ] = False,
    paths: Annotated[
        list[str] | None,
        typer.Option("--paths", help="Only commits that touch these can be the culprit."),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option(
            "--fix", help="A commit to cherry-pick onto sources that do not build without it."
        ),
    ] = None,
    edit: Edits = None,
    patch: Patches = None,
    toolchain: Toolchain = None,
    no_proof: Annotated[
        bool, typer.Option("--no-proof", help="Leave out clean builds and counterfactuals.")
    ] = False,
    scatter: Annotated[
        float | None,
        typer.Option(
            "--scatter",
            metavar="PCT",
            help="By how much builds of one source differ (`plan --layouts`). Default: estimated.",
        ),
    ] = None,
    backports: Annotated[
        bool,
        typer.Option(
            "--backports", help="Also measure cherry-picks of the culprit on other branches."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show candidates, builds, runs and hours; do nothing.")
    ] = False,
    matrix: OutsideMatrix = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    keep: Keep = False,
    metric: MetricName = DEFAULT_METRIC,
    level: Level = SearchOptions.level,
    max_runs: MaxRuns = SearchOptions.max_runs,
    max_builds: MaxBuilds = None,
    max_hours: MaxHours = None,
    smallest: Smallest = None,
    expected: Expected = None,
    inside: Inside = 0,
    every: EveryStep = False,
    profile: Profiled = False,
    events: EventLines = False,
    prior: Annotated[
        list[str] | None,
        typer.Option(
            "--prior", help="PATTERN=WEIGHT: how suspicious matching files are; repeatable."
        ),
    ] = None,
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Suspect every commit equally, whatever it changes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the commit that made the server slow, and prove it.

    An end is any revision of git's (a tag, a branch, HEAD~3), or a release such as 2.0.16.
    If neither end leads to the other, both sides are looked at.

    Example: dsbisect bisect commits 2.0.16..2.0.17 --repo ~/src/server --workload bind-one

    Example: dsbisect bisect commits --repo . --good v2.0.16 --bad HEAD
    """
    from dsbisect.cli.search_progress import Events, Watch
    from dsbisect.commits.commit_range import expected_text, forecast_of, laid_range, prior_table
    from dsbisect.commits.commits_request import CommitsRequest, with_usual_workload
    from dsbisect.commits.commits_study import run_commits
    from dsbisect.commits.commits_text import answer_text, write_findings
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_settings, find_workload, load_matrix
    from dsharness.measure.metrics import find_metric
    from dsresults.store import Store

    options = SearchOptions(
        level=level, max_runs=max_runs, max_builds=max_builds,
        max_hours=max_hours, smallest_pct=smallest,
        expected_pct=expected, inside=inside, every=every, scatter_pct=scatter,
    )  # fmt: skip
    first, last = _ends(between, good, bad)
    checked = load_matrix(matrix, folder=False)
    ask = CommitsRequest(
        matrix=checked,
        workload=find_workload(checked, workload or checked.defaults.workloads[0]),
        settings=find_settings(checked, settings_id),
        repository=repo,
        good=first,
        bad=last,
        first_parent=first_parent,
        paths=tuple(paths or ()),
        fixes=tuple(fix or ()),
        metric=find_metric(metric).name,
        edits=tuple(edit or ()),
        patches=tuple(patch or ()),
        toolchain=toolchain,
        proof=not no_proof,
        scatter_pct=scatter,
        backports=backports,
        keep=keep,
        profile=profile,
        prior=prior_table(prior or ()),
        flat=no_prior,
    )
    scope = laid_range(ask)
    if workload is None:
        ask = with_usual_workload(ask, scope.repository, scope.bad)
    forecast = forecast_of(ask, scope)
    if dry_run:
        text = forecast.model_dump_json(indent=2) if as_json else expected_text(forecast)
        typer.echo(text)
        return
    engine = detect()
    place = Store.open(store, folder=outside(repo))
    with place as opened, Events() if events else Watch() as watch:
        watch.note(expected_text(forecast).splitlines()[0])
        for note in scope.notes:
            watch.note(f"note: {note}")
        outcome = run_commits(
            ask, scope, engine=engine, store=opened, watcher=watch, options=options
        )
    path = write_findings(checked, outcome, output)
    findings = outcome.findings
    text = findings.model_dump_json(indent=2) if as_json else f"{answer_text(findings)}\n{path}"
    typer.echo(text)
    contradicted = any(culprit.proved is False for culprit in findings.culprits)
    if contradicted or findings.whole.direction == "unknown":
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _ends(between: str | None, good: str | None, bad: str | None) -> tuple[str, str]:
    """Where the search begins and ends, however it was spelled."""
    from dsbuilds.history.revision import ends_of

    if between is not None:
        if good is not None or bad is not None:
            raise UsageError(
                f"{between} and --{'bad' if good is None else 'good'}: one of them is too much",
                hint="name a range GOOD..BAD, or --good and --bad",
            )
        return ends_of(between)
    if good is None or bad is None:
        raise UsageError(
            f"no {'--good' if good is None else '--bad'} is given",
            hint="name a range GOOD..BAD, or --good and --bad; HEAD is what is checked out",
        )
    return good, bad
