"""`doctor`: what this machine lacks, and how to fix it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, StorePlace, WorkloadId
from dsharness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from dsharness.doctor.checkup import Diagnosis

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
    str | None,
    typer.Option("--row", help="Default: the matrix's first.", rich_help_panel=NOISE),
]
NoiseRuns = Annotated[
    int,
    typer.Option(
        "--runs", min=2, max=1000, help="Of each side that shall count.", rich_help_panel=NOISE
    ),
]
RUNS = 10


def doctor(
    *,
    fresh: Fresh = False,
    as_json: AsJson = False,
    noise: Noise = False,
    row: NoiseRow = None,
    workload: WorkloadId = None,
    runs: NoiseRuns = RUNS,
    matrix: MatrixFile = None,
    store: StorePlace = None,
) -> None:
    """Check what the lab needs of this machine, and print a fix for each fault.

    Example: dsbisect doctor --fresh

    Example: dsbisect doctor --noise --row debian-12 --workload bind-random --runs 10
    """
    if noise:
        if fresh:
            raise UsageError("--fresh is of no use with --noise", hint="`dsbisect doctor --fresh`")
        from dsbisect.cli.noise import show_noise

        show_noise(row, workload, runs, matrix, store, as_json=as_json)
        return
    needs_noise = {
        "--row": row, "--workload": workload, "--matrix": matrix, "--store": store,
        "--runs": runs != RUNS,
    }  # fmt: skip
    for name in (name for name, given in needs_noise.items() if given):
        raise UsageError(f"{name} needs --noise", hint="`dsbisect doctor --help`")
    from rich.console import Console

    from dsharness.doctor.checkup import examine

    errors = Console(stderr=True)
    with errors.status("looking", spinner="line") as status:
        diagnosis = examine(fresh=fresh, progress=lambda what: status.update(f"checking: {what}"))
    if as_json:
        typer.echo(json.dumps(document(diagnosis), indent=2))
    else:
        _print(diagnosis)
    if diagnosis.exit_code is not ExitCode.OK:
        raise typer.Exit(diagnosis.exit_code)


def document(diagnosis: Diagnosis) -> dict[str, object]:
    """The findings, for programs."""
    engine = diagnosis.engine
    known = {**asdict(engine), "configuration": str(engine.configuration or "")} if engine else None
    return {
        "ok": diagnosis.exit_code is ExitCode.OK,
        "exit_code": int(diagnosis.exit_code),
        "checks": [check.model_dump(mode="json", exclude={"code"}) for check in diagnosis.checks],
        "engine": known,
    }


def _print(diagnosis: Diagnosis) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("result, and how to fix it", overflow="fold")
    for check in diagnosis.checks:
        result = Text(check.seen)
        if check.fix:
            result.append(f"\nfix: {check.fix}", style="bold")
        table.add_row(check.name, Text(check.level, style=STYLES[check.level]), result)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
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
