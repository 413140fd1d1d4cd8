"""`doctor`: what this machine lacks, and how to fix it; how steady it is, and what it builds."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    MatrixFile,
    MetricName,
    SettingsId,
    StorePlace,
    WorkloadId,
    outside,
    refuse,
)
from dsharness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from dsbisect.commits.commits_question import Commits
    from dsbisect.measure_study import RowNoise
    from dsbisect.metric_noise import MetricNoise
    from dsharness.doctor.checkup import Diagnosis
    from dsharness.model import Sample
    from dssearch.build_scatter import BuildScatter

PIPED_WIDTH = 160  # a pipe has no width; rich would fold at 80
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}

Fresh = Annotated[
    bool, typer.Option("--fresh", help="Probe the container engine again; forget what worked.")
]


NOISE = "How steady this machine is"
Noise = Annotated[
    bool,
    typer.Option(
        "--noise",
        help="Measure one row against itself: what each metric varies by, and the smallest "
        "change that 20 runs would show.",
        rich_help_panel=NOISE,
    ),
]
NoiseRow = Annotated[
    str | None, typer.Option("--row", help="Default: the matrix's first.", rich_help_panel=NOISE)
]
NoiseRuns = Annotated[
    int,
    typer.Option(
        "--runs",
        min=2,
        max=1000,
        help="Of each side that shall count, or of each build.",
        rich_help_panel=NOISE,
    ),
]
RUNS = 10
LAYOUTS = "By how much builds of one source differ"
Layouts = Annotated[
    int | None,
    typer.Option(
        "--layouts",
        metavar="K",
        min=2,
        help="Build one commit of --repo K times, its objects in other orders, and measure each.",
        rich_help_panel=LAYOUTS,
    ),
]
Repository = Annotated[
    str | None,
    typer.Option("--repo", help="The repository; it is only read.", rich_help_panel=LAYOUTS),
]
Revision = Annotated[
    str, typer.Option("--at", help="The commit that is built.", rich_help_panel=LAYOUTS)
]
HEAD = "HEAD"


def doctor(  # noqa: PLR0913 - each is an option
    *,
    fresh: Fresh = False,
    as_json: AsJson = False,
    noise: Noise = False,
    row: NoiseRow = None,
    workload: WorkloadId = None,
    runs: NoiseRuns = RUNS,
    layouts: Layouts = None,
    repo: Repository = None,
    revision: Revision = HEAD,
    metric: MetricName = DEFAULT_METRIC,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
) -> None:
    """Check what the lab needs of this machine, and print a fix for each fault.

    Example: dsbisect doctor --fresh

    Example: dsbisect doctor --noise --row debian-12 --workload bind-random --runs 10

    Example: dsbisect doctor --layouts 5 --repo ~/src/server --at main --workload bind-random
    """
    if layouts is not None:
        refuse("is of no use with --layouts", {"--noise": noise, "--row": row, "--fresh": fresh})
        from dsbisect.commits.commits_question import Commits

        if repo is None:
            raise UsageError(
                "--layouts builds a commit: it needs --repo",
                hint="`dsbisect doctor --layouts 5 --repo ~/src/server --at main`",
            )
        study = Commits(
            repository=repo,
            good=revision,
            bad=revision,
            workload=workload,
            metric=metric,
            settings=settings_id,
        )
        show_layouts(study, layouts, runs, matrix, store, as_json=as_json)
        return
    of_layouts = {"--repo": repo, "--at": revision != HEAD, "--metric": metric != DEFAULT_METRIC}
    refuse("needs --layouts", of_layouts)
    if noise:
        refuse("is of no use with --noise", {"--fresh": fresh})
        show_noise(row, workload, settings_id, runs, matrix, store, as_json=as_json)
        return
    refuse("needs --noise", {"--row": row})
    of_runs = {
        "--workload": workload,
        "--matrix": matrix,
        "--store": store,
        "--runs": runs != RUNS,
        "--settings": settings_id != "default",
    }
    refuse("needs --noise or --layouts", of_runs)
    _check_machine(fresh=fresh, as_json=as_json)


def _check_machine(*, fresh: bool, as_json: bool) -> None:
    from dsbisect.cli.shown_output import shown_console
    from dsharness.doctor.checkup import examine

    errors = shown_console(stderr=True)
    with errors.status("looking", spinner="line") as status:
        diagnosis = examine(fresh=fresh, progress=lambda news: status.update(f"checking: {news}"))
    if as_json:
        typer.echo(json.dumps(document(diagnosis), indent=2))
    else:
        _print(diagnosis)
    if diagnosis.exit_code is not ExitCode.OK:
        raise typer.Exit(diagnosis.exit_code)


def document(diagnosis: Diagnosis) -> dict[str, object]:
    """The findings, for programs."""
    engine = diagnosis.engine
    engine_facts = (
        {**asdict(engine), "configuration": str(engine.configuration or "")} if engine else None
    )
    return {
        "ok": diagnosis.exit_code is ExitCode.OK,
        "exit_code": int(diagnosis.exit_code),
        "checks": [check.model_dump(mode="json", exclude={"code"}) for check in diagnosis.checks],
        "engine": engine_facts,
    }


def _print(diagnosis: Diagnosis) -> None:
    from rich.table import Table
    from rich.text import Text

    from dsbisect.cli.shown_output import shown_console

    table = Table(box=None, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("result, and how to fix it", overflow="fold")
    for check in diagnosis.checks:
        result = Text(check.seen)
        if check.fix:
            result.append(f"\nfix: {check.fix}", style="bold")
        table.add_row(check.name, Text(check.level, style=STYLES[check.level]), result)
    console = shown_console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    console.print(table)
    console.print(summary(diagnosis), markup=False)


def summary(diagnosis: Diagnosis) -> str:
    """The last line: the result, and what to do next."""
    from dsharness.doctor import Level

    failed, warned = diagnosis.count(Level.FAIL), diagnosis.count(Level.WARN)
    if failed:
        return (
            f"{failed} failed, {warned} warnings: the lab cannot work until the failures are fixed"
        )
    if warned:
        return f"nothing failed, {warned} warnings: the lab works"
    return "everything is fine"


DIFFERS = 1.5  # times: then odd runs make most of the CV


def show_noise(
    row: str | None,
    workload: str | None,
    settings_id: str,
    runs: int,
    matrix: Path | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Measure it, and print one line for each metric."""
    from dsbisect.cli.study_command import Circumstances, this_machine
    from dsbisect.measure_study import RowNoise
    from dsbisect.metric_noise import noise_of
    from dsbisect.study_lab import Scene
    from dsharness.matrix import find_row, load_matrix
    from dslab.lab_conditions import default_workloads

    scene = Scene(matrix=load_matrix(matrix))
    chosen_row = find_row(scene.matrix, row or scene.matrix.rows[0].id)
    load = workload or default_workloads(scene.matrix, [chosen_row.system])[0].named
    study = RowNoise(row=chosen_row.id, workload=(load,), runs=runs, settings=settings_id)
    scene.refuse_impossible(study)
    with this_machine(scene, Circumstances(store=store)) as lab:
        samples = study.play(lab)
    first, second = (
        [sample for sample in samples if sample.candidate_id == name] for name in study.sides
    )
    lines = noise_of(first, second)
    refused = [sample for sample in samples if not sample.valid]
    if as_json:
        typer.echo(json.dumps(noise_document(study, lines, refused), indent=2))
        return
    for line in noise_lines(study, lines, refused):
        typer.echo(line)


def noise_document(
    study: RowNoise, lines: Sequence[MetricNoise], refused: Sequence[Sample]
) -> dict[str, object]:
    """The findings, for programs."""
    return {
        "row": study.row,
        "workload": study.workload[0],
        "runs": study.runs,
        "metrics": [line.model_dump(mode="json") for line in lines],
        "invalid": [
            {"sample": sample.id, "turn": sample.turn, "why": list(sample.invalid)}
            for sample in refused
        ],
    }


def noise_lines(
    study: RowNoise, lines: Sequence[MetricNoise], refused: Sequence[Sample]
) -> Iterator[str]:
    """The findings, for people."""
    yield f"{study.row} against itself, {study.workload[0]}, {study.runs} runs a side"
    yield f"{'metric':17}{'mean':>12} {'unit':18}{'CV':>8}  20 runs would show"
    for line in lines:
        yield (
            f"{line.metric:17}{line.mean:12.4g} {line.unit:18}{_percent(line.cv_pct):>8}  "
            f"{_shown(line)}{_robust(line)}"
        )
    for sample in refused:
        yield f"not counted: turn {sample.turn}, {sample.candidate_id}: {'; '.join(sample.invalid)}"


def _shown(line: MetricNoise) -> str:
    if line.smallest is None:
        return "not known: fewer than two pairs"
    if line.smallest_pct is None:
        return f"{line.smallest:.3g} {line.unit} more"
    return f"{_percent(line.smallest_pct)}"


def _robust(line: MetricNoise) -> str:
    if not line.cv_pct or line.robust_cv_pct is None or line.cv_pct < DIFFERS * line.robust_cv_pct:
        return ""
    return f" (CV by medians {_percent(line.robust_cv_pct)}: odd runs)"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def show_layouts(
    study: Commits,
    layouts: int,
    runs: int,
    matrix: Path | None,
    store: str | None,
    *,
    as_json: bool,
) -> None:
    """Build a commit in so many layouts, measure each, and print by how much they differ."""
    from dsbisect.cli.search_progress import SearchProgress
    from dsbisect.commits.source_lab import scatter_of_builds
    from dsbisect.study_lab import Scene
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import load_matrix
    from dsresults.store import Store

    own = outside(study.repository)
    request = study.request(Scene(matrix=load_matrix(matrix, folder=own)), keep=False)
    engine = detect()
    with Store.open(store) as opened, SearchProgress() as watch:
        scatter = scatter_of_builds(
            request, layouts, runs, engine=engine, store=opened, observer=watch
        )
    typer.echo(scatter.model_dump_json(indent=2) if as_json else scatter_text(scatter))


def scatter_text(scatter: BuildScatter) -> str:
    """Return by how much builds differ, and what a search of a small step makes of it."""
    from dssearch.build_scatter import BUILDS, SEVERAL

    low, high = scatter.interval_pct
    smallest = SEVERAL * scatter.scatter_pct
    return (
        f"builds of one source differ by {scatter.scatter_pct:.1f} % ({low:.1f} to {high:.1f} %, "
        f"from {scatter.builds} builds)\n"
        f"runs of one build differ by {scatter.noise_pct:.1f} %, from {scatter.runs} runs\n"
        f"a step below {smallest:.1f} %: `bisect commits --scatter {scatter.scatter_pct:.1f}` "
        f"proves it with {BUILDS} builds of each side"
    )
