"""The root command: gathers the groups, and turns every error into a message and a status."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from dsbisect.cli import image, matrix, results
from dsbisect.cli.bisecting import bisect_rows, reproduce
from dsbisect.cli.clean import clean
from dsbisect.cli.doctor import doctor
from dsbisect.cli.measuring import measure
from dsbisect.cli.reporting import report
from dsharness.errors import DsbisectError, ExitCode
from dsharness.paths import logs_home


class Root(TyperGroup):
    """Keeps apart what typer would merge: a Ctrl-C, a closed pipe, a wrong command line."""

    def make_context(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - typer's own types
        with _told_apart():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        with _told_apart():
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise typer.Abort from error
    except (BrokenPipeError, SystemExit) as error:
        # Rich leaves by SystemExit when its reader has gone; nothing else in here does.
        raise typer.Exit(_unheard()) from error


app = typer.Typer(
    name="dsbisect",
    cls=Root,
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


def main(application: typer.Typer = app) -> NoReturn:
    """Run one command; every way out has its documented status."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = application(standalone_mode=False)
    except DsbisectError as error:
        sys.exit(_fail(f"error: {error}", error.exit_code))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(
            _fail(
                "interrupted: containers are removed and every finished sample is stored; "
                "the same command goes on from there",
                ExitCode.INTERRUPTED,
            )
        )
    except typer.TyperException as error:
        show = getattr(error, "show", None)  # typer's word for it; its base class has none
        if show is not None:
            show()
        sys.exit(ExitCode.USAGE)
    except Exception:  # noqa: BLE001 - the last door: a defect is reported, not dumped
        sys.exit(_fail(_defect(), ExitCode.INTERNAL))
    sys.exit(code or ExitCode.OK)


def _unheard() -> ExitCode:
    """Whoever read our output has enough of it; what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.OK


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """SIGTERM ends the lab the way Ctrl-C does: with its containers removed."""
    del number, frame
    raise KeyboardInterrupt


def _fail(message: str, code: ExitCode) -> ExitCode:
    typer.echo(message, err=True)
    return code


def _defect() -> str:
    """Keep the traceback for us and spare the user."""
    trace = traceback.format_exc()
    told = f"error: a defect of dsbisect: {trace.strip().splitlines()[-1]}"
    path = logs_home() / "defect.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trace, encoding="utf-8")
    except OSError as error:
        return f"{told}\n  log: cannot be written: {error}\n  next: please report it\n{trace}"
    return f"{told}\n  log: {path}\n  next: please report it"
