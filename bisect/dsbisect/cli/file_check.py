"""`dsbisect check`: a matrix, a workload's file or a watch's file is read; nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, refuse

if TYPE_CHECKING:
    from dsharness.model import Matrix, Workload

Answer = tuple[list[str], dict[str, Any]]  # as lines, and as data
KINDS = "a matrix has `rows`, a workload's file `workloads`, a watch's file `loads`"
WATCH_KEYS = {"id", "repository", "branches", "loads"}  # which no other file has


def check(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="A matrix, a workload's file (also an id), or a watch's file. Default: the "
            "matrix that is used.",
            show_default=False,
        ),
    ] = None,
    *,
    row: Annotated[
        str | None,
        typer.Option("--row", help="With a workload: also whether this row can answer it."),
    ] = None,
    matrix: MatrixFile = None,
    as_json: AsJson = False,
) -> None:
    """Check a matrix, a workload's file or a watch's file; nothing is measured.

    Every error has its file, its line and what is allowed.

    Example: dsbisect check mine.yaml

    Example: dsbisect check nested.yaml --row debian-12
    """
    kind = "matrix" if file is None else kind_of(file)
    if kind != "workload":
        refuse(f"with a {kind}: only a workload is for a row", {"--row": row})
    if file is None or kind == "matrix":
        if file is not None:
            refuse("with the file of a matrix: that one is checked", {"--matrix": matrix})
        lines, data = _matrix(matrix if file is None else Path(file))
    elif kind == "workload":
        lines, data = _workload(file, row, matrix)
    else:
        lines, data = _watch(Path(file), matrix)
    document = {"valid": True, "kind": kind, **data}
    typer.echo(json.dumps(document, indent=2) if as_json else "\n".join(lines))


def kind_of(file: str) -> str:
    """Return what a file is by its keys, `matrix`, `workload` or `watch`; MatrixError for none."""
    from dsharness.errors import MatrixError
    from dsharness.matrix.loader import UNREAD_HINT
    from dsharness.model import Matrix
    from dsharness.yaml_files.yaml_source import read_document

    path = Path(file)
    if path.suffix not in {".yaml", ".yml"} and not path.exists():
        return "workload"  # its id, or one with a number of users
    keys = read_document(path, hint=KINDS, unread=UNREAD_HINT).data.keys()
    if WATCH_KEYS & keys:
        return "watch"
    if (Matrix.model_fields.keys() - {"workloads"}) & keys:
        return "matrix"
    if "workloads" in keys:
        return "workload"
    raise MatrixError(
        f"{path}: neither a matrix nor the file of a workload or a watch, with the keys "
        f"{', '.join(keys) or 'of none'}",
        hint=KINDS,
    )


def _matrix(place: Path | None) -> Answer:
    from dsharness.matrix import find_matrix, load_matrix

    where = place or find_matrix()
    checked = load_matrix(where)
    counts = {
        "rows": len(checked.rows),
        "series": len(checked.series),
        "workloads": len(checked.workloads),
        "settings": len(checked.settings),
    }
    listed = ", ".join(f"{count} {noun}" for noun, count in counts.items())
    return [f"{where}: valid: {listed}"], {"matrix": str(where), **counts}


def _watch(file: Path, matrix: Path | None) -> Answer:
    from dsbisect.watch_study import read_watch, understood_watch
    from dsharness.matrix import load_matrix

    checked = load_matrix(matrix, folder=False)
    watch = read_watch(file, checked)
    lines = [f"{file}: valid", *understood_watch(watch, checked)]
    return lines, {"watch": watch.model_dump(mode="json")}


def _workload(file: str, row: str | None, matrix: Path | None) -> Answer:
    from dsharness.matrix import find_workload, load_matrix

    checked = load_matrix(matrix)
    load = find_workload(checked, file)
    if row is not None:
        _refuse_unfit(checked, row, load)
    notes = _notes(checked, load)
    fits = f"; {row} can answer it" if row else ""
    lines = [f"{file}: valid{fits}", *_understood(load), *notes]
    return lines, {"workload": load.model_dump(mode="json"), "notes": notes}


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
