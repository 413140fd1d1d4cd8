"""`workload`: a workload's file is made from a recorded access log, and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile

if TYPE_CHECKING:
    from dsharness.model import Matrix, Workload

app = typer.Typer(
    no_args_is_help=True, help="Make a workload's file from a recorded access log; check one."
)


@app.callback()
def workload() -> None:
    """Make a workload's file from a recorded access log; check one."""


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


@app.command("check")
def check(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A YAML file with a workload; also an id.")
    ],
    *,
    row: Annotated[
        str | None, typer.Option("--row", help="Also whether this row can answer it.")
    ] = None,
    matrix: MatrixFile = None,
    as_json: AsJson = False,
) -> None:
    """Check a workload, and print what it asks for; nothing is measured.

    Example: dsbisect workload check mine.yaml --row debian-12
    """
    from dsharness.matrix import find_workload, load_matrix

    checked = load_matrix(matrix)
    load = find_workload(checked, file)
    if row is not None:
        _refuse_unfit(checked, row, load)
    notes = _notes(checked, load)
    if as_json:
        document = {"valid": True, "workload": load.model_dump(mode="json"), "notes": notes}
        typer.echo(json.dumps(document, indent=2))
        return
    fits = f"; {row} can answer it" if row else ""
    typer.echo("\n".join((f"{file}: valid{fits}", *_understood(load), *notes)))


def _refuse_unfit(matrix: Matrix, row: str, load: Workload) -> None:
    """UsageError for a load that the row cannot answer with the matrix's own settings."""
    from dsharness.matrix import find_row, find_settings
    from dslab.candidates import check_loads

    settings = find_settings(matrix, matrix.defaults.settings)
    check_loads(matrix, (find_row(matrix, row),), (load,), settings)


def _understood(load: Workload) -> list[str]:
    """What is asked for, and how fast."""
    from dsharness.model import LdaploadWorkload

    requests = load.requests if isinstance(load, LdaploadWorkload) else ()
    pace = "as answers come" if load.rate is None else f"{load.rate:g} operations/s"
    if load.share_pct is not None:
        pace = f"{load.share_pct:g} % of what the slower end answers"
    writes = "; it writes: a new server for each turn" if load.writes else ""
    return [
        f"  {load.id}: {load.title}",
        f"  by {load.tool}, {load.connections} connections, {pace}{writes}",
        *(f"  {request}" for request in requests),
    ]


def _notes(matrix: Matrix, load: Workload) -> list[str]:
    """What may be right, and is wrong more often."""
    from dsharness.yaml_files.problems import suggestion

    control = getattr(load, "control", None)
    workload_ids = [workload.id for workload in matrix.workloads]
    _, _, users = load.named.rpartition("@")
    if control is None or control.removesuffix(f"-{users}") in workload_ids:
        return []
    note = (
        f"note: the control {control!r} is no workload of the matrix: a report compares with it "
        f"only if its own file is measured too.{suggestion(control, workload_ids)}"
    )
    return [note]
