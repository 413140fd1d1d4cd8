"""`dsbisect list`: what the matrix, the metrics and the store have to choose from, a line each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsbisect.cli.common_options import AsJson, MatrixFile
from dsbisect.cli.results import answers

if TYPE_CHECKING:
    from dsharness.measure.metric import Metric
    from dsharness.model import Row, Series, Settings, Toolchain, Workload

app = typer.Typer(
    no_args_is_help=True,
    help="List what options can name: rows, workloads, metrics, settings, series, toolchains, "
    "answers.",
)
Word = Annotated[
    str | None,
    typer.Argument(
        metavar="WORD",
        help="Only lines with this word; with a whole name, all of that one.",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What an option can name: as a line, as data, and in full."""

    cells: tuple[str, ...]  # its name first
    data: Mapping[str, Any]
    text: str | None = None  # in full; default: what is in its data

    def has(self, word: str) -> bool:
        return any(word.lower() in cell.lower() for cell in self.cells)

    @property
    def in_full(self) -> str:
        from dsharness.matrix.row_text import whole_text

        name = self.cells[0]
        facts = ((noun, _told(value)) for noun, value in self.data.items() if value != name)
        return self.text or whole_text(name, facts)


@app.command()
def rows(word: Word = None, *, matrix: MatrixFile = None, as_json: AsJson = False) -> None:
    """List rows: system, product, published verdict, origin.

    Example: dsbisect list rows fedora
    """
    from dsharness.matrix import find_row, load_matrix
    from dsharness.matrix.row_text import row_cells, row_text

    checked = load_matrix(matrix)

    def entry(row: Row) -> Entry:
        data = row.model_dump(mode="json")
        return Entry(cells=row_cells(row), data=data, text=row_text(checked, row))

    _show(
        map(entry, checked.rows), word, lambda name: entry(find_row(checked, name)), as_json=as_json
    )


@app.command()
def workloads(word: Word = None, *, matrix: MatrixFile = None, as_json: AsJson = False) -> None:
    """List workloads: protocol, load tool, connections and pace, title.

    Example: dsbisect list workloads search
    """
    from dsharness.matrix import find_workload, load_matrix

    checked = load_matrix(matrix)

    def entry(load: Workload) -> Entry:
        title = f"{load.title}; it writes" if load.writes else load.title
        cells = (load.id, load.protocol, load.tool, _pace(load), title)
        return Entry(cells=cells, data=load.model_dump(mode="json"))

    entries = map(entry, checked.workloads)
    _show(entries, word, lambda name: entry(find_workload(checked, name)), as_json=as_json)


@app.command()
def metrics(word: Word = None, *, as_json: AsJson = False) -> None:
    """List metrics: unit, what it is.

    Example: dsbisect list metrics latency
    """
    from dsharness.measure.metrics import METRICS, find_metric

    def entry(metric: Metric) -> Entry:
        data = {
            "name": metric.name,
            "title": metric.title,
            "unit": metric.unit,
            "better": "smaller" if metric.smaller_is_better else "larger",
            "witness": metric.witness,
        }
        return Entry(cells=(metric.name, metric.unit, metric.title), data=data)

    _show(
        map(entry, METRICS.values()), word, lambda name: entry(find_metric(name)), as_json=as_json
    )


@app.command()
def settings(word: Word = None, *, matrix: MatrixFile = None, as_json: AsJson = False) -> None:
    """List settings of servers: title, options.

    Example: dsbisect list settings scheme
    """
    from dsharness.matrix import find_settings, load_matrix

    checked = load_matrix(matrix)

    def entry(chosen: Settings) -> Entry:
        cells = (chosen.id, chosen.title, ", ".join(_told(chosen.options).splitlines()))
        return Entry(cells=cells, data=chosen.model_dump(mode="json"))

    entries = map(entry, checked.settings)
    _show(entries, word, lambda name: entry(find_settings(checked, name)), as_json=as_json)


@app.command()
def series(word: Word = None, *, matrix: MatrixFile = None, as_json: AsJson = False) -> None:
    """List series: number of rows, title, rows.

    Example: dsbisect list series fedora
    """
    from dsharness.matrix import find_series, load_matrix
    from dsharness.matrix.series_graph import chains

    checked = load_matrix(matrix)

    def entry(order: Series) -> Entry:
        row_ids = list(dict.fromkeys(row_id for chain in chains(order) for row_id in chain))
        title = f"{order.title} (default)" if order.id == checked.defaults.series else order.title
        cells = (order.id, f"{len(row_ids)} rows", title, ", ".join(row_ids))
        return Entry(cells=cells, data=order.model_dump(mode="json"))

    _show(
        map(entry, checked.series),
        word,
        lambda name: entry(find_series(checked, name)),
        as_json=as_json,
    )


@app.command()
def toolchains(word: Word = None, *, matrix: MatrixFile = None, as_json: AsJson = False) -> None:
    """List toolchains in order of preference: row, what a source may need of it.

    Example: dsbisect list toolchains debian-12
    """
    from dsbuilds.toolchains.toolchain_choice import named
    from dsharness.matrix import load_matrix

    checked = load_matrix(matrix)

    def entry(toolchain: Toolchain) -> Entry:
        cells = (toolchain.id, toolchain.row, ", ".join(toolchain.offers))
        return Entry(cells=cells, data=toolchain.model_dump(mode="json"))

    _show(
        map(entry, checked.toolchains),
        word,
        lambda name: entry(named(name, checked.toolchains)),
        as_json=as_json,
    )


app.command()(answers)


def _show(
    entries: Iterable[Entry],
    word: str | None,
    find: Callable[[str], Entry],
    *,
    as_json: bool,
) -> None:
    """Print all, those with the word, or the one of that name; ``find`` refuses what is none."""
    listed = list(entries)
    if word is not None:
        whole = next((entry for entry in listed if entry.cells[0] == word), None)
        listed = [entry for entry in listed if entry.has(word)]
        whole = whole or (None if listed else find(word))
        if whole is not None:
            typer.echo(_json(whole.data) if as_json else whole.in_full, nl=False)
            return
    if as_json:
        typer.echo(_json([entry.data for entry in listed]), nl=False)
    else:
        typer.echo("".join(_aligned([entry.cells for entry in listed])), nl=False)


def _aligned(lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines whose cells stand below each other."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for cells in lines:
        padded = (f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True))
        yield "  ".join(padded).rstrip() + "\n"


def _pace(load: Workload) -> str:
    """Return how many connections a load has, and how fast it asks if a schedule says it."""
    if load.share_pct is not None:
        return f"{load.connections} connections, {load.share_pct:g} %"
    return f"{load.connections} connections" + (f", {load.rate:g}/s" if load.rate else "")


def _told(value: object) -> str:
    """Return a value of JSON as readers write it; what says nothing is no text."""
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_told(inside)}" for key, inside in value.items() if inside)
    if isinstance(value, list):
        line_end = "\n" if any(isinstance(item, dict) for item in value) else ", "
        return line_end.join(", ".join(_told(item).splitlines()) for item in value)
    if isinstance(value, bool):
        return "yes" if value else ""
    return "" if value is None else str(value)


def _json(data: object) -> str:
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
