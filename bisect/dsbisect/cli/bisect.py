"""`bisect rows` and `bisect commits`: find where fast turns slow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.bisect_commits import bisect_commits
from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    EventLines,
    EveryStep,
    Expected,
    Inside,
    Keep,
    Level,
    MachineClass,
    MachineNumber,
    MatrixFile,
    MaxBuilds,
    MaxHours,
    MaxRuns,
    MeasuredOn,
    MetricName,
    Profiled,
    Relock,
    ReportFolder,
    SettingsId,
    Smallest,
    StorePlace,
    WorkloadIds,
    refuse_unread,
)
from dsbisect.search_options import SearchOptions
from dsharness.errors import ExitCode, StoppedError

if TYPE_CHECKING:
    from dsbisect.rows_study import Findings, RowsRequest
    from dsharness.model import Campaign
    from dsresults.profile_pair import ProfilePair

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
    on: MeasuredOn = None,
    machines: MachineNumber = None,
    class_name: MachineClass = "",
    events: EventLines = False,
    as_json: AsJson = False,
) -> None:
    """Find where fast turns slow along a series of rows.

    Example: dsbisect bisect rows --series debian --good debian-11 --bad debian-13
    --workload bind-one

    Example: dsbisect bisect rows --series debian --workload bind-one
    --on postgresql://lab@db.example.org/dsbisect --machines 2..4
    """
    from dsbisect.rows_study import RowsRequest, check_asked
    from dsharness.matrix import find_series, find_settings, find_workload, load_matrix
    from dsharness.matrix.series_graph import chains
    from dsharness.measure.metrics import find_metric
    from dslab.lab_conditions import default_workloads

    refuse_unread(on, machines, class_name)
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
    if on is not None:
        from dsbisect.cli.followed_run import follow_shared
        from dsbisect.shared_rows import document_of

        check_asked(request, request.rows)
        follow_shared(
            document_of(request, options), output, on=on, store=store, machines=machines,
            class_name=class_name, events=events, as_json=as_json,
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
    from dsbisect.rows_study import check_asked, run_study
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    check_asked(request, request.rows, shares=True)
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


app.command("commits")(bisect_commits)
