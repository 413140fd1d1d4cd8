"""`plan`: what a search will take, and whether it can succeed at all."""

from __future__ import annotations

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
)
from dsbisect.search_options import SEEN_PCT, SEEN_RUNS, SearchOptions
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dssearch.forecast import Forecast


def plan(  # noqa: PLR0913 - each is an option
    row: Annotated[
        str | None, typer.Argument(help="Row to measure against itself; none with --noise-pct.")
    ] = None,
    *,
    smallest: Annotated[
        float, typer.Option("--smallest", help="The slowdown to find, in per cent.")
    ],
    candidates: Annotated[
        int, typer.Option("--candidates", help="Among how many rows or commits.")
    ] = 64,
    noise_pct: Annotated[
        float | None,
        typer.Option(
            "--noise-pct", help="By how many per cent a run varies; then nothing is measured."
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=4, help="Pairs of runs to measure the noise with.")
    ] = 10,
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

    Example: dsbisect bisect plan debian-13 --smallest 10 --candidates 128 --workload bind-one
    """
    from dsbisect.cli.study_command import Circumstances, this_machine
    from dsbisect.commits.commit_range import GOLDEN_S, NEXT_BUILD_S
    from dsbisect.measure_study import RowNoise
    from dsbisect.study_lab import Scene
    from dsharness.matrix import find_settings, find_workload, load_matrix
    from dsharness.measure.metrics import find_metric
    from dslab.lab_conditions import measures_pairs
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
        candidates=candidates,
        drop_pct=smallest,
        most_runs=max_runs,
        most_hours=max_hours,
        level=level,
    )
    check(forecast_request)
    decider = find_metric(metric)
    checked = load_matrix(matrix)
    driven = find_workload(checked, workload or checked.defaults.workloads[0])
    find_settings(checked, settings_id)  # one that there is
    engine = None
    if noise_pct is not None:
        _refuse_both(row, noise_pct)
        noise_known = Noise.named(noise_pct)
    else:
        pilot = RowNoise(
            row=_named(row),
            workload=(driven.named,),
            settings=settings_id,
            runs=runs,
            metric=decider.name,
            keeps=False,
        )
        scene = Scene(matrix=checked, workloads={driven.named: driven})
        scene.refuse_impossible(pilot)
        with this_machine(scene, Circumstances(store=store)) as lab:
            engine, noise_known = lab.engine, noise_of(pilot.play(lab), decider)
    refuse_the_invisible(noise_known, forecast_request, driven.duration_s)
    options = SearchOptions(
        level=level,
        max_runs=max_runs,
        seen_pct=SEEN_PCT,
        seen_runs=SEEN_RUNS,
        max_hours=max_hours,
        paired=measures_pairs(engine, decider.name, driven),
    )
    search = options.search(driven, prepare_s=0.0 if built else NEXT_BUILD_S + GOLDEN_S)
    assert isinstance(search, Bayes)  # noqa: S101 - a plan is always for that one
    plan = forecast(noise_known, forecast_request, search, search.costs)
    typer.echo(plan.model_dump_json(indent=2) if as_json else _text(plan))
    refuse_without_chance(plan, forecast_request, driven.duration_s)


def _refuse_both(row: str | None, noise: float) -> None:
    if row is not None:
        raise UsageError(
            f"{row} and --noise-pct {noise:g}: one of them is too much",
            hint="a row is measured to see its noise; with --noise-pct nothing is measured",
        )


def _named(row: str | None) -> str:
    if row is None:
        raise UsageError(
            "a plan needs the noise of a run: name a row, or give --noise-pct",
            hint="`dsbisect bisect plan debian-13 --smallest 10`, or --noise-pct 5",
        )
    return row


def _text(plan: Forecast) -> str:
    low, high = plan.noise_interval_pct
    rests = (
        f"{low:.1f} to {high:.1f} %, from {plan.pilot_runs} runs" if plan.pilot_runs else "given"
    )
    return "\n".join(
        [
            f"noise of one run:      {plan.noise_pct:.1f} % ({rests})",
            f"smallest drop visible: {plan.smallest_visible_pct:.1f} %",
            f"to find {plan.drop_pct:g} % among {plan.candidates} candidates:",
            f"  runs:   {plan.runs:.0f} (at most, in 9 of 10 searches: {plan.most_runs:.0f})",
            f"  builds: {plan.builds:.1f}",
            f"  hours:  {plan.hours:.2f}",
            f"  right:  {plan.right:.0%} ± {plan.right_error:.0%}",
            f"  wrong:  {plan.wrong:.0%} ± {plan.wrong_error:.0%} (names another one)",
        ]
    )
