"""Every way the command can end: an error, a Ctrl-C, a defect."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from dsharness.errors import DsbisectError, ExitCode
from dsharness.paths import logs_home
from dsharness.plain_text import without_credentials
from dsharness.process.command import NO_SPACE, owners_alone
from dsharness.process.deadline import forget_request, keep_request

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Group(TyperGroup):
    """Distinguishes what typer would merge: a Ctrl-C and a wrong command line."""

    def make_context(self, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - typer's own types
        with _distinguished():
            return super().make_context(*args, **more)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        with _distinguished():
            done = super().invoke(ctx)
            sys.stdout.flush()
            return done


@contextmanager
def _distinguished() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise typer.Abort from error


def run(application: typer.Typer) -> NoReturn:
    """Run one command; every end has its documented exit code."""
    forget_request()
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)
    try:
        code = application(standalone_mode=False)
    except DsbisectError as error:
        sys.exit(_fail(f"error: {error}", error.exit_code))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(
            _fail(
                "interrupted: containers are removed and every finished sample is stored; "
                "the same command continues from there",
                ExitCode.INTERRUPTED,
            )
        )
    except typer.TyperException as error:
        show = getattr(error, "show", None)  # typer's own message; its base class has none
        if show is not None:
            show()
        sys.exit(ExitCode.USAGE)
    except Exception as error:  # noqa: BLE001 - the last door: a defect is reported, not dumped
        if isinstance(error, OSError) and error.errno in NO_SPACE:  # for what it prints
            sys.exit(_fail("error: the answer cannot be written: no space left", ExitCode.DISK))
        sys.exit(_fail(_defect(), ExitCode.INTERNAL))
    sys.exit(code or ExitCode.OK)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """Every stop signal ends the lab the way one Ctrl-C does: with its containers removed."""
    del number, frame
    for each in STOPPING:
        signal.signal(each, _already_stopping)
    keep_request()
    raise KeyboardInterrupt


def _already_stopping(number: int, frame: FrameType | None) -> None:
    """A second Ctrl-C would only interrupt the removal of the containers."""
    del number, frame
    os.write(2, b"still removing containers\n")


def _fail(message: str, code: ExitCode) -> ExitCode:
    typer.echo(message, err=True)
    return code


def _defect() -> str:
    """Write the traceback to a log; the user sees one line."""
    trace = without_credentials(traceback.format_exc())
    message = f"error: a defect of dsbisect: {trace.strip().splitlines()[-1]}"
    path = logs_home() / "defect.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=owners_alone) as stream:
            stream.write(trace)
    except OSError as error:
        return f"{message}\n  log: cannot be written: {error}\n  next: please report it\n{trace}"
    return f"{message}\n  log: {path}\n  next: please report it"
