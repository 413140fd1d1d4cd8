"""`schemes`: the password schemes that servers offer, what they cost, and what OWASP says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, Keep, MatrixFile, Relock, StorePlace
from dsharness.errors import ExitCode

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dsresults.explainers.scheme_costs import SchemeCost

PIPED_WIDTH = 170  # a pipe has no width; rich would fold at 80


def schemes(  # noqa: PLR0913 - each is an option
    rows: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ROW...", help="Default: those of the default series.", show_default=False
        ),
    ] = None,
    *,
    scheme: Annotated[
        list[str] | None,
        typer.Option("--scheme", help="Repeatable: only this one. Default: all that are offered."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="Of each scheme.")] = 3,
    users: Annotated[
        int,
        typer.Option(
            "--users",
            min=2,
            max=100_000,
            help="Users that bind, at random; more where a library keeps results of a scheme.",
        ),
    ] = 200,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Measure every password scheme that rows offer: what is stored, a bind's cost, OWASP's word.

    Example: dsbisect schemes debian-12 debian-13

    Example: dsbisect schemes debian-13 --scheme PBKDF2-SHA512 --scheme SSHA512 --json
    """
    from dsbisect.cli.search_progress import WatchOfLabs
    from dsbisect.cli.shown_output import shown_console
    from dsbisect.schemes_study import SchemesRequest, SchemesStudy
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_series, load_matrix
    from dsharness.matrix.series_graph import chains
    from dsresults.store import Store

    checked = load_matrix(matrix)
    line = chains(find_series(checked, checked.defaults.series))
    names = rows or [row for chain in line for row in chain]
    known = tuple(find_row(checked, name) for name in dict.fromkeys(names))
    request = SchemesRequest(
        matrix=checked, rows=known, runs=runs, users=users,
        schemes=tuple(scheme or ()), relock=relock, keep=keep,
    )  # fmt: skip
    check_rows(checked, known)
    with Store.open(store) as opened, WatchOfLabs() as watch:
        study = SchemesStudy(request=request, engine=detect(), store=opened, watcher=watch)
        lines = study.lines()
    if as_json:
        typer.echo(json.dumps([line.model_dump(mode="json") for line in lines], indent=2))
    else:
        console = shown_console()
        console = console if console.is_terminal else shown_console(width=PIPED_WIDTH)
        for part in shown(lines):
            console.print(part)
    if any(line.failed for line in lines):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def shown(lines: Sequence[SchemeCost]) -> Iterator[RenderableType]:
    """A table for each row, and what its words mean."""
    from rich.markup import escape
    from rich.table import Table

    from dsharness.products import product_ids
    from dsresults.explainers.password_explainer import hashing_of
    from dsresults.number_text import significant, whole

    for row in dict.fromkeys(line.row for line in lines):
        table = Table(
            "scheme", "stored as", "CPU of a bind", "binds/s", "÷ default", "OWASP",
            title=escape(row), title_justify="left",
        )  # fmt: skip
        for line in (line for line in lines if line.row == row):
            table.add_row(
                escape(line.scheme) + (" (default)" if line.default else ""),
                escape(line.stored_as),
                line.cost,
                whole(line.per_cpu_s) if line.per_cpu_s else "-",
                significant(line.of_default) if line.of_default else "-",
                escape(line.failed or line.verdict),
            )
        yield table
    yield "CPU of a bind: median and range of the runs. binds/s: on one CPU. ÷ default: calibrated."
    known = (hashing_of(name).recommended for name in product_ids())
    told = (f"{each.title}, as of {each.date}: {each.address}" for each in known if each)
    yield from dict.fromkeys(map(escape, told))  # products share it
