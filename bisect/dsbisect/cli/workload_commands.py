"""`workload`: a workload's file is made from a recorded access log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dsbisect.cli.common_options import AsJson

app = typer.Typer(no_args_is_help=True, help="Make a workload's file from a recorded access log.")


@app.callback()
def workload() -> None:
    """Make a workload's file from a recorded access log."""


@app.command("from-log")
def from_log(
    logs: Annotated[
        list[Path], typer.Argument(help="Access logs of 389-ds, in any order; .gz too.")
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write it there instead of printing it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a workload like an access log of 389-ds; no name or value of the log is kept.

    Example: dsbisect workload from-log access access.2026* --output mine.yaml
    """
    from dsharness.process.command import atomic_write
    from dsharness.recorded.access_log import read_files
    from dsharness.recorded.recorded_load import left_out_lines, recorded_load, workload_text

    load = recorded_load(read_files(logs))
    text = workload_text(load)
    if output is not None:
        atomic_write(output, text)
    if as_json:
        document = {
            "operations": load.operations,
            "unread_lines": load.unread,
            "left_out": load.left_out,
            "per_second": load.per_second,
            "workload": load.workload.model_dump(mode="json"),
        }
        typer.echo(json.dumps(document, indent=2))
        return
    if output is None:
        typer.echo(text, nl=False)
    else:
        typer.echo(f"wrote {output}: {load.operations} operations")
        for line in left_out_lines(load):
            typer.echo(line)
    if load.unread:
        typer.echo(f"{load.unread} lines could not be read", err=True)
