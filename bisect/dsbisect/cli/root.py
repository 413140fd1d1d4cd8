"""The root command: every command by its name, imported when it is the one that is run.

Every way it can end is told here too: an error, a Ctrl-C, a defect.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from dsbisect.cli.manual import with_manual
from dsbisect.cli.shown_output import shown_output
from dsharness.errors import DsbisectError, ExitCode, UsageError
from dsharness.paths import logs_home, unwritable_cache
from dsharness.plain_text import shown, without_credentials
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
    """Run one command; every end has its documented exit code, all that it prints is shown."""
    with shown_output():
        _run(application)


def _run(application: typer.Typer) -> NoReturn:
    forget_request()
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupt)
    try:
        code = application(standalone_mode=False)
    except DsbisectError as error:
        sys.exit(_fail(f"error: {with_manual(str(error))}", error.exit_code))
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
        if isinstance(error, OSError) and (refused := unwritable_cache(error)):
            sys.exit(_fail(f"error: {refused}", refused.exit_code))
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
            stream.write(shown(trace))
    except OSError as error:
        return f"{message}\n  log: cannot be written: {error}\n  next: please report it\n{trace}"
    return f"{message}\n  log: {path}\n  next: please report it"


@dataclass(frozen=True, kw_only=True)
class Lazy:
    """Where a command is, and the line of it that `--help` shows without importing it."""

    place: str  # module:name, of a function or of a group's application
    summary: str

    def load(self, name: str) -> Any:  # noqa: ANN401 - typer's own types
        """The command itself; its module is imported now."""
        return _loaded(self.place, name)


@cache  # tests run one command many times
def _loaded(place: str, name: str) -> Any:  # noqa: ANN401
    module, _, member = place.partition(":")
    found = getattr(import_module(f"dsbisect.cli.{module}"), member)
    if isinstance(found, typer.Typer):
        group = get_group(found)
        group.name = name
        return group
    alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
    alone.command(name, cls=ParentCommand if commands_below(name) else TyperCommand)(found)
    return get_command(alone)


class ParentCommand(TyperCommand):
    """A command that has others below it: `measure ROW`, and `measure levels ROW`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - typer's own types
        self._as_group(ctx).format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401
        return self._as_group(ctx).shell_complete(ctx, incomplete)

    def _as_group(self, ctx: Any) -> TyperGroup:  # noqa: ANN401
        return TyperGroup(
            name=self.name,
            params=self.params,
            help=self.help,
            commands=commands_below(ctx.info_name),
            subcommand_metavar="| COMMAND ...",
            rich_markup_mode="rich",
        )


def commands_below(parent: str) -> dict[str, Any]:
    """Return the commands of a command, or of the root (""), with the line that lists each."""
    places = {words.rpartition(" ")[::2]: lazy.summary for words, lazy in COMMANDS.items()}
    return {
        name: TyperCommand(name, help=summary, rich_markup_mode="rich")
        for (before, name), summary in places.items()
        if before == parent
    }


COMMANDS = {
    "doctor": Lazy(
        place="doctor:doctor",
        summary="Check what the lab needs of this machine, and print a fix for each fault.",
    ),
    "compare": Lazy(
        place="study_command:compare",
        summary="Compare two of anything under every load of a suite: in what is the second one "
        "slower.",
    ),
    "timeline": Lazy(
        place="study_command:timeline",
        summary="Measure a repository's releases under every load of a suite: since when is which "
        "slower.",
    ),
    "bisect": Lazy(
        place="bisect:app",
        summary="Find where fast turns slow: among rows, or among commits of a repository.",
    ),
    "measure": Lazy(
        place="measure:measure",
        summary="Measure a row, or a directory by its address; with commands below it.",
    ),
    "measure levels": Lazy(
        place="study_command:levels",
        summary="Measure rows under rising load: latency and rate of each level, and the knee.",
    ),
    "measure sizes": Lazy(
        place="study_command:sizes",
        summary="Measure rows on directories of several sizes: how their cost grows, and whose "
        "grows more.",
    ),
    "measure endurance": Lazy(
        place="study_command:endurance",
        summary="Load a row for a long time in phases: no operation may fail; drifts of latency "
        "and memory.",
    ),
    "measure schemes": Lazy(
        place="study_command:schemes",
        summary="Measure every password scheme that rows offer: what is stored, a bind's cost, "
        "OWASP's word.",
    ),
    "measure load": Lazy(
        place="load:load",
        summary="Load a server with several workers, for a while: percentiles, errors, whether "
        "they kept up.",
    ),
    "explain": Lazy(
        place="study_command:explain",
        summary="Attribute a difference between two rows to what can be changed alone.",
    ),
    "reproduce": Lazy(
        place="reproduce:reproduce",
        summary="Build, measure and report the matrix's default series, or test published claims.",
    ),
    "validate": Lazy(
        place="validate:validate",
        summary="Tell whether a patched package may be shipped: 0 yes, 1 no, 20 not known yet.",
    ),
    "validate verify": Lazy(
        place="validate:verify",
        summary="Check that packages are those of a signed validation, and what it said.",
    ),
    "judge": Lazy(
        place="judge:judge",
        summary="Judge one commit against two references: 0 good, 1 bad, 125 skip.",
    ),
    "build": Lazy(
        place="build:app",
        summary="Build from source: make a build, list builds, survey a repository's tags.",
    ),
    "watch": Lazy(
        place="watch:app",
        summary="Measure branches as they grow; decide on alarms, and release their texts.",
    ),
    "show": Lazy(
        place="show:show",
        summary="Show an answer again from what is stored; with commands below it.",
    ),
    "show record": Lazy(
        place="results:record",
        summary="Show what the store has of a campaign, a finding, a sample or an image.",
    ),
    "show history": Lazy(
        place="stored_runs:history",
        summary="Show all that was ever measured of a candidate: runs, workloads, metrics, "
        "machines.",
    ),
    "show steps": Lazy(
        place="search_steps:steps",
        summary="Print every step of a search; with --json, a log that `show again` reads.",
    ),
    "show again": Lazy(
        place="search_steps:again",
        summary="Search a log's samples, or play a study, again: the answer must be the same.",
    ),
    "show pages": Lazy(
        place="stored_pages:pages",
        summary="Serve the store's reports and watches to a browser on this machine, until Ctrl-C.",
    ),
    "list": Lazy(
        place="matrix_lists:app",
        summary="List what options can name: rows, workloads, metrics, settings, series, "
        "toolchains, answers.",
    ),
    "check": Lazy(
        place="file_check:check",
        summary="Check a matrix, a workload's file or a watch's file; nothing is measured.",
    ),
    "machines": Lazy(
        place="machines:app",
        summary="Show the machines that share searches; be one, or follow a search.",
    ),
    "image": Lazy(
        place="image:app", summary="Build and list the rows' images, and show what is in them."
    ),
    "matrix": Lazy(
        place="matrix_commands:app",
        summary="Draw the matrix's series, print its schema.",
    ),
    "workload": Lazy(
        place="workload_commands:app",
        summary="Make a workload's file from a recorded access log.",
    ),
    "results": Lazy(place="results:app", summary="Export and import what was measured."),
    "clean": Lazy(
        place="clean:clean",
        summary="Remove containers that no running lab owns, and what the options name; never "
        "the store.",
    ),
}


class Root(Group):
    """Lists every command from the table above; imports only the one that is run."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        self.commands = commands_below("")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        name, listed, rest = super().resolve_command(ctx, args)
        if (words := " ".join(args[:2])) in COMMANDS:
            name, rest = words, args[len(words.split()) :]
        return name, COMMANDS[name].load(name) if name in COMMANDS else listed, rest

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        if not ctx.resilient_parsing:  # a shell that completes a word
            refuse_empty(args)
        return super().parse_args(ctx, args)


def refuse_empty(words: Sequence[str]) -> None:
    """UsageError for a value that is empty: no command takes one, and some took it for none."""
    for before, word in pairwise(("dsbisect", *words)):
        option, equals, value = word.partition("=")
        whole = bool(equals) and option.startswith("--")
        if value or (word and not whole):
            continue
        shown = without_credentials(word if whole else f"{before} ''")
        raise UsageError(
            f"{shown}: the value is empty",
            hint="give one, or leave it out; a variable that is not set is empty, too",
        )


app = typer.Typer(
    name="dsbisect",
    cls=Root,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Find where a server turned slow: "
    "matrix.yaml goes in, a proven fast/slow boundary comes out.",
    epilog="Start with: [bold]dsbisect doctor[/], then [bold]dsbisect reproduce[/].",
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        from importlib.metadata import version

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
