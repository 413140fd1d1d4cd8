"""`bisect commits`: find the commit that made a server slow, and prove it."""

from __future__ import annotations

from typing import Annotated

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
    MachineClass,
    MachineNumber,
    MaxBuilds,
    MaxHours,
    MaxRuns,
    MeasuredOn,
    MetricName,
    OutsideMatrix,
    Patches,
    Profiled,
    Refs,
    ReportFolder,
    SettingsId,
    Smallest,
    StorePlace,
    Toolchain,
    WorkloadId,
    outside,
    refuse_unread,
)
from dsbisect.cli.followed_run import follow_shared
from dsbisect.cli.told_answers import tell_commits
from dsbisect.search_options import SearchOptions
from dsharness.errors import UsageError

Repo = Annotated[
    str, typer.Option("--repo", help="Checkout, bare repository or URL; it is only read.")
]


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
            help="By how much builds of one source differ (`plan --layouts`). Default: the search "
            "estimates it, the proof takes 2 %.",
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
    on: MeasuredOn = None,
    machines: MachineNumber = None,
    class_name: MachineClass = "",
    refs: Refs = "",
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
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_settings, find_workload, load_matrix
    from dsharness.measure.metrics import find_metric
    from dsresults.store import Store

    refuse_unread(on, machines, class_name, refs)
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
    if on is not None:
        from dsbisect.commits.shared_commits import document_of
        from dslab.lab_conditions import refuse_shares

        refuse_shares((ask.workload,))
        notes = (f"note: {note}" for note in scope.notes)
        for line in (expected_text(forecast).splitlines()[0], *notes):
            typer.echo(line, err=True)
        follow_shared(
            document_of(ask, scope, options, refs), output, on=on, store=store,
            machines=machines, class_name=class_name, events=events, as_json=as_json,
        )  # fmt: skip
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
    tell_commits(checked, outcome, output, as_json=as_json)


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
