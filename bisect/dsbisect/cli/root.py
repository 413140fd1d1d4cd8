"""The root command: gathers the groups, and turns every error into a message and a status."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import click
import typer

from dsbisect.cli import image, matrix, results
from dsbisect.cli.bisecting import bisect_rows, reproduce
from dsbisect.cli.clean import clean
from dsbisect.cli.doctor import doctor
from dsbisect.cli.measuring import measure
from dsbisect.cli.reporting import report
from dsharness.errors import DsbisectError, ExitCode
from dsharness.paths import logs_home

app = typer.Typer(
    name="dsbisect",
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
app.add_typer(bisect, name="bisect")
app.command()(reproduce)
app.command()(report)
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
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = app(standalone_mode=False)
    except DsbisectError as error:
        sys.exit(_fail(f"error: {error}", error.exit_code))
    except (KeyboardInterrupt, click.Abort):
        sys.exit(
            _fail(
                "interrupted: containers are removed and every finished sample is stored; "
                "the same command goes on from there",
                ExitCode.INTERRUPTED,
            )
        )
    except click.ClickException as error:
        error.show()
        sys.exit(ExitCode.USAGE)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
        sys.exit(ExitCode.OK)
    except Exception:  # noqa: BLE001 - the last door: a defect is reported, not dumped
        sys.exit(_fail(_defect(), ExitCode.INTERNAL))
    sys.exit(code or ExitCode.OK)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends the lab the way Ctrl-C does: with its containers removed."""
    del number, frame
    raise KeyboardInterrupt


def _fail(message: str, code: ExitCode) -> ExitCode:
    typer.echo(message, err=True)
    return code


def _defect() -> str:
    """Keep the traceback for us and spare the user."""
    path = Path(logs_home()) / "defect.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(traceback.format_exc(), encoding="utf-8")
    last = traceback.format_exc().strip().splitlines()[-1]
    return f"error: a defect of dsbisect: {last}\n  log: {path}\n  next: please report it"
