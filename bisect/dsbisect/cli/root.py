"""The root command: gathers the groups."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from dsbisect.cli import image, matrix, results
from dsbisect.cli.bisecting import bisect_rows, reproduce
from dsbisect.cli.build import build, builds
from dsbisect.cli.clean import clean
from dsbisect.cli.commits import bisect_commits
from dsbisect.cli.doctor import doctor
from dsbisect.cli.ending import Group, run
from dsbisect.cli.judge import judge
from dsbisect.cli.measuring import measure
from dsbisect.cli.plan import plan
from dsbisect.cli.replay import log, replay_log
from dsbisect.cli.reporting import report

app = typer.Typer(
    name="dsbisect",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find where a 389-ds directory server turned slow: "
    "matrix.yaml goes in, a proven fast/slow boundary comes out.",
    epilog="Start with: [bold]dsbisect doctor[/], then [bold]dsbisect reproduce[/].",
)
bisect = typer.Typer(no_args_is_help=True, help="Search a series for its fast/slow boundary.")
bisect.command("rows")(bisect_rows)

app.command()(doctor)
app.add_typer(matrix.app, name="matrix")
app.add_typer(image.app, name="image")
app.command()(measure)
app.command()(plan)
app.command()(build)
app.command()(builds)
app.add_typer(bisect, name="bisect")
app.command("commits")(bisect_commits)
app.command()(judge)
app.command()(reproduce)
app.command()(report)
app.command()(log)
app.command("replay")(replay_log)
app.add_typer(results.app, name="results")
app.command()(clean)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        typer.echo(f"dsbisect {version('dsbisect')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    del show_version  # its callback has done the work


def main() -> NoReturn:
    """Run one command; every way out has its documented status."""
    run(app)
