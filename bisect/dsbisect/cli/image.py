"""`image`: build the rows' images, list them, show what is in them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile, Relock
from dsharness.errors import DsbisectError

if TYPE_CHECKING:
    from rich.table import Table

    from dsharness.model import Image, Matrix, Row

app = typer.Typer(
    no_args_is_help=True, help="Build and list the rows' images, and show what is in them."
)


@app.command("build")
def build(
    rows: Annotated[
        list[str] | None,
        typer.Argument(metavar="ROW", help="Rows to build. Default: the default series'."),
    ] = None,
    *,
    matrix: MatrixFile = None,
    relock: Relock = False,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Build existing images again, base included.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the images of rows; existing images are not made again.

    Example: dsbisect image build debian-12 debian-13 --relock
    """
    from dsbisect.cli.shown_output import shown_console
    from dsbuilds.build_request import check_rows
    from dsbuilds.built_row import row_image
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import load_matrix
    from dsharness.model import Image
    from dsimages.image_set import build_images

    checked = load_matrix(matrix)
    chosen_rows = _rows(checked, rows)
    check_rows(checked, chosen_rows)
    engine = detect()
    results = build_images(
        engine,
        checked,
        chosen_rows,
        relock=relock,
        no_cache=no_cache,
        make_built=lambda row, progress: row_image(
            engine, checked, row, relock=relock, on_progress=progress
        ),
        on_progress=lambda row, news: typer.echo(f"{row}: {news}", err=True),
    )
    images = [result for result in results.values() if isinstance(result, Image)]
    if as_json:
        typer.echo(json.dumps([_facts(row, result) for row, result in results.items()], indent=2))
    elif images:
        shown_console().print(_table(images))
    failures = [result for result in results.values() if isinstance(result, DsbisectError)]
    for failure in failures[1:]:
        typer.echo(f"error: {failure}", err=True)
    if failures:
        raise failures[0]


@app.command("list")
def show_list(*, as_json: AsJson = False) -> None:
    """List the images that exist.

    Example: dsbisect image list --json
    """
    from dsbisect.cli.shown_output import shown_console
    from dsharness.containers.engine_probe import detect
    from dsimages.image_set import list_images

    images = list_images(detect())
    if as_json:
        typer.echo(json.dumps([_facts(image.candidate_id, image) for image in images], indent=2))
    else:
        shown_console().print(_table(images))


@app.command("manifest")
def manifest(
    row: Annotated[str, typer.Argument(help="The row whose image to show.")],
    *,
    matrix: MatrixFile = None,
    as_json: AsJson = False,
) -> None:
    """Show every package of a row's image and its version.

    Example: dsbisect image manifest debian-12 --json
    """
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, load_matrix
    from dsharness.products import notable_versions
    from dsimages.image_set import image_of

    checked = load_matrix(matrix)
    chosen_row = find_row(checked, row)
    image = image_of(detect(), checked, chosen_row)
    if as_json:
        typer.echo(json.dumps({**_facts(row, image), "packages": image.packages}, indent=2))
        return
    for noun, version in notable_versions(image).items():
        typer.echo(f"# {noun}: {version}")
    for name, version in image.packages.items():
        typer.echo(f"{name}\t{version}")


def _rows(matrix: Matrix, names: list[str] | None) -> list[Row]:
    """Each row once; without names, those that `reproduce` measures and the load generator's."""
    from dsharness.matrix import find_row, find_series

    series = find_series(matrix, matrix.defaults.series)
    row_names = names or [*(series.rows or series.parents), *matrix.tools.loads.values()]
    return [find_row(matrix, name) for name in dict.fromkeys(row_names)]


def _facts(row_id: str, result: Image | DsbisectError) -> dict[str, object]:
    from dsharness.products import notable_versions

    if isinstance(result, DsbisectError):
        log = str(result.log) if result.log else None
        return {
            "row": row_id,
            "error": result.message,
            "exit_code": int(result.exit_code),
            "hint": result.hint,
            "log": log,
        }
    return {
        "row": row_id,
        "reference": result.reference,
        "key": result.key,
        "notable": notable_versions(result),
    }


def _table(images: list[Image]) -> Table:
    from rich.box import SIMPLE
    from rich.table import Table

    from dsharness.products import notable_versions

    table = Table(box=SIMPLE)
    for title in ("row", "serves", "with"):
        table.add_column(title, overflow="fold")
    for image in images:
        serves, *libraries = [
            f"{noun} {version}" for noun, version in notable_versions(image).items()
        ] or [""]
        table.add_row(image.candidate_id, serves, ", ".join(libraries))
    return table
