"""`dsbisect matrix`: draw the matrix's series, print its schema."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile

if TYPE_CHECKING:
    from dsharness.matrix.series_graph import Drawing
    from dsharness.model import Matrix

app = typer.Typer(no_args_is_help=True, help="Draw the matrix's series, print its schema.")


class GraphFormat(StrEnum):
    TEXT = "text"
    DOT = "dot"
    JSON = "json"


@app.command()
def graph(
    series: Annotated[
        str | None, typer.Argument(help="A series, or `releases`. Default: the default series.")
    ] = None,
    *,
    form: Annotated[GraphFormat, typer.Option("--format", help="How.")] = GraphFormat.TEXT,
    matrix: MatrixFile = None,
    as_json: AsJson = False,
) -> None:
    """Draw a series with its branches; `*` marks where the default scheme or verdict changes.

    Example: dsbisect matrix graph releases
    """
    from dsharness.matrix import load_matrix
    from dsharness.matrix.series_graph import SERIES_ID, as_data, as_dot, as_text

    drawing = _releases() if series == SERIES_ID else _rows(load_matrix(matrix), series)
    if as_json or form is GraphFormat.JSON:
        _print_json(as_data(drawing))
    else:
        typer.echo(as_dot(drawing) if form is GraphFormat.DOT else as_text(drawing), nl=False)


@app.command()
def schema(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write it there instead of printing it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema that editors check matrix.yaml with.

    Example: dsbisect matrix schema --output matrix.schema.json
    """
    from dsharness.matrix.loader import schema_text
    from dsharness.process.command import atomic_write

    if output is not None:
        atomic_write(output, schema_text())
    if as_json and output is not None:
        _print_json({"schema": str(output)})
    elif output is not None:
        typer.echo(f"wrote {output}")
    else:
        typer.echo(schema_text(), nl=False)


def _releases() -> Drawing:
    from dsharness.matrix.series_graph import Drawing, graph_of, known_releases

    series, releases = known_releases()
    shown = {release.version: release.shown for release in releases}
    return Drawing(
        id=series.id,
        title=series.title,
        graph=graph_of(series),
        labels=shown,
        kinds=shown,
    )


def _rows(matrix: Matrix, series_id: str | None) -> Drawing:
    from dsharness.matrix import find_row, find_series
    from dsharness.matrix.row_text import row_label
    from dsharness.matrix.series_graph import Drawing, chains, graph_of

    series = find_series(matrix, series_id or matrix.defaults.series)
    rows = {name: find_row(matrix, name) for chain in chains(series) for name in chain}
    return Drawing(
        id=series.id,
        title=series.title,
        graph=graph_of(series),
        labels={name: row_label(row) for name, row in rows.items()},
        kinds={n: row.published.verdict if row.published else "" for n, row in rows.items()},
    )


def _print_json(data: object) -> None:
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
