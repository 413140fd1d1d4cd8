"""`plan`: what a search will take, and whether it can succeed at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    Level,
    MatrixFile,
    MaxHours,
    MaxRuns,
    MetricName,
    SettingsId,
    StorePlace,
    WorkloadId,
    outside,
)
from dsbisect.search_options import SearchOptions
from dsharness.errors import InconclusiveError, UsageError

if TYPE_CHECKING:
    from dssearch.build_scatter import BuildScatter
    from dssearch.forecast import Forecast


def plan(  # noqa: PLR0913 - each is an option
    row: Annotated[
        str | None, typer.Argument(help="Row to measure against itself; none with --noise.")
    ] = None,
    *,
    drop: Annotated[float, typer.Option("--drop", help="The slowdown to find, in per cent.")],
    candidates: Annotated[
        int, typer.Option("--candidates", help="Among how many rows or commits.")
    ] = 64,
    noise: Annotated[
        float | None,
        typer.Option(
            "--noise", help="By how many per cent a run varies; then nothing is measured."
        ),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=4, help="Pairs of runs to measure the noise with.")
    ] = 10,
    layouts: Annotated[
        int | None,
        typer.Option(
            "--layouts", min=2, help="Builds of one commit of --repo, to see how builds differ."
        ),
    ] = None,
    repo: Annotated[
        str | None, typer.Option("--repo", help="With --layouts: the repository; it is only read.")
    ] = None,
    revision: Annotated[
        str, typer.Option("--at", help="With --layouts: the commit that is built.")
    ] = "HEAD",
    built: Annotated[
        bool, typer.Option("--built", help="The candidates are built already: rows, not commits.")
    ] = False,
    workload: WorkloadId = None,
    settings_id: SettingsId = "default",
    metric: MetricName = DEFAULT_METRIC,
    level: Level = SearchOptions.level,
    max_runs: MaxRuns = SearchOptions.max_runs,
    max_hours: MaxHours = None,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Measure the noise, simulate the search, and print what it would take.

    With --layouts, measure also by how much builds of one source differ by themselves.

    Example: dsbisect plan debian-13 --drop 10 --candidates 128 --workload bind-one
    """
    from dsbisect.cli.search_progress import Watch
    from dsbisect.cli.study_command import Circumstances, this_machine
    from dsbisect.commits.commit_range import GOLDEN_S, NEXT_BUILD_S
    from dsbisect.commits.commits_request import CommitsRequest
    from dsbisect.commits.source_lab import scatter_of_builds
    from dsbisect.measure_study import Noise as RowNoise
    from dsbisect.study_lab import Scene
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_settings, find_workload, load_matrix
    from dsharness.measure.metrics import find_metric
    from dslab.lab_conditions import measures_pairs
    from dsresults.store import Store
    from dssearch.bayes.bayes_search import Bayes
    from dssearch.forecast import (
        ForecastRequest,
        check,
        forecast,
        refuse_the_invisible,
        refuse_without_chance,
    )
    from dssearch.pilot_noise import Noise, noise_of

    forecast_request = ForecastRequest(
        candidates=candidates, drop_pct=drop, most_runs=max_runs, most_hours=max_hours, level=level
    )
    check(forecast_request)
    decider = find_metric(metric)
    checked = load_matrix(matrix)
    driven = find_workload(checked, workload or checked.defaults.workloads[0])
    settings = find_settings(checked, settings_id)
    scatter, engine = None, None
    if layouts is not None:
        if repo is None or row is not None or noise is not None:
            raise UsageError(
                "--layouts builds a commit: it needs --repo, and neither a row nor --noise",
                hint="`dsbisect plan --repo ~/src/server --at HEAD --layouts 5 --drop 5`",
            )
        ask = CommitsRequest(
            matrix=checked,
            workload=driven,
            settings=settings,
            metric=decider.name,
            repository=repo,
            good=revision,
            bad=revision,
        )
        with Store.open(store, folder=outside(repo)) as opened, Watch() as watch:
            scatter = scatter_of_builds(
                ask, layouts, samples, engine=(engine := detect()), store=opened, watcher=watch
            )
        noise_known = Noise.estimated(scatter.noise, freedom=scatter.freedom, runs=scatter.runs)
    elif noise is not None:
        _refuse_both(row, noise)
        noise_known = Noise.named(noise)
    else:
        pilot = RowNoise(
            row=_named(row),
            workload=(driven.named,),
            settings=settings_id,
            runs=samples,
            metric=decider.name,
            keeps=False,
        )
        scene = Scene(matrix=checked, workloads={driven.named: driven})
        scene.refuse_impossible(pilot)
        with this_machine(scene, Circumstances(store=store)) as lab:
            engine, noise_known = lab.engine, noise_of(pilot.play(lab), decider)
    try:
        refuse_the_invisible(noise_known, forecast_request, driven.duration_s)
    except InconclusiveError:  # builds were measured for minutes: it is said in any case
        typer.echo("\n".join(_differing(scatter, drop)), err=True, nl=scatter is not None)
        raise
    options = SearchOptions(
        level=level,
        max_runs=max_runs,
        max_hours=max_hours,
        paired=measures_pairs(engine, decider.name, driven),
    )
    search = options.search(driven, prepare_s=0.0 if built else NEXT_BUILD_S + GOLDEN_S)
    assert isinstance(search, Bayes)  # noqa: S101 - a plan is always for that one
    plan = forecast(noise_known, forecast_request, search, search.costs).model_copy(
        update={"builds_differ": scatter}
    )
    typer.echo(plan.model_dump_json(indent=2) if as_json else _text(plan))
    refuse_without_chance(plan, forecast_request, driven.duration_s)


def _refuse_both(row: str | None, noise: float) -> None:
    if row is not None:
        raise UsageError(
            f"{row} and --noise {noise:g}: one of them is too much",
            hint="a row is measured to see its noise; with --noise nothing is measured",
        )


def _named(row: str | None) -> str:
    if row is None:
        raise UsageError(
            "a plan needs the noise of a run: name a row, or give --noise",
            hint="`dsbisect plan debian-13 --drop 10`, or --noise 5",
        )
    return row


def _differing(scatter: BuildScatter | None, drop_pct: float) -> Iterator[str]:
    from dssearch.build_scatter import BUILDS, SEVERAL

    if scatter is None:
        return
    low, high = scatter.interval_pct
    yield (
        f"builds of one source differ by {scatter.scatter_pct:.1f} % ({low:.1f} to {high:.1f} %, "
        f"from {scatter.builds} builds)"
    )
    if drop_pct < SEVERAL * scatter.scatter_pct:
        yield (
            f"  {drop_pct:g} % is less than {SEVERAL:g} times that: `bisect commits --scatter "
            f"{scatter.scatter_pct:.1f}` proves it with {BUILDS} builds of each side"
        )


def _text(plan: Forecast) -> str:
    low, high = plan.noise_interval_pct
    rests = (
        f"{low:.1f} to {high:.1f} %, from {plan.pilot_runs} runs" if plan.pilot_runs else "given"
    )
    return "\n".join(
        [
            f"noise of one run:      {plan.noise_pct:.1f} % ({rests})",
            *_differing(plan.builds_differ, plan.drop_pct),
            f"smallest drop visible: {plan.smallest_visible_pct:.1f} %",
            f"to find {plan.drop_pct:g} % among {plan.candidates} candidates:",
            f"  runs:   {plan.runs:.0f} (at most, in 9 of 10 searches: {plan.most_runs:.0f})",
            f"  builds: {plan.builds:.1f}",
            f"  hours:  {plan.hours:.2f}",
            f"  right:  {plan.right:.0%} ± {plan.right_error:.0%}",
            f"  wrong:  {plan.wrong:.0%} ± {plan.wrong_error:.0%} (names another one)",
        ]
    )
