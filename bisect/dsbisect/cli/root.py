"""The root command: every command by its name, imported when it is the one that is run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand
from typer.main import get_command, get_group

from dsbisect.cli.exits import Group, run


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
    alone.command(name)(found)
    return get_command(alone)


COMMANDS = {
    "doctor": Lazy(
        place="doctor:doctor",
        summary="Check what the lab needs of this machine, and print a fix for each fault.",
    ),
    "measure": Lazy(
        place="measure:measure",
        summary="Build, serve and measure one row, or measure a directory by its address.",
    ),
    "plan": Lazy(
        place="plan:plan",
        summary="Measure the noise, simulate the search, and print what it would take.",
    ),
    "build": Lazy(
        place="build:app",
        summary="Build from source: make a build, list builds, survey a repository's tags.",
    ),
    "validate": Lazy(
        place="validate:validate",
        summary="Tell whether a patched package may be shipped: 0 yes, 1 no, 20 not known yet.",
    ),
    "verify": Lazy(
        place="validate:verify",
        summary="Check that packages are those of a signed validation, and what it said.",
    ),
    "judge": Lazy(
        place="judge:judge",
        summary="Judge one commit against two references: 0 good, 1 bad, 125 skip.",
    ),
    "reproduce": Lazy(
        place="rows:reproduce",
        summary="Build, measure and report the matrix's default series: the whole chain in one "
        "command.",
    ),
    "report": Lazy(
        place="report:report",
        summary="Write the report again from stored samples; the last line is its path.",
    ),
    "log": Lazy(
        place="replay:log",
        summary="Print every step of a search; with --json, a log that `replay` reads anywhere.",
    ),
    "replay": Lazy(
        place="replay:replay_log",
        summary="Search a log's samples again: the steps and the answer must be the same.",
    ),
    "clean": Lazy(
        place="clean:clean",
        summary="Remove containers that no running lab owns, and what the options name; never "
        "the store.",
    ),
    "matrix": Lazy(place="matrix:app", summary="Show, check and draw what can be measured."),
    "image": Lazy(
        place="image:app", summary="Build and list the rows' images, and show what is in them."
    ),
    "bisect": Lazy(
        place="bisect:app", summary="Find where fast turns slow: among rows, or among commits."
    ),
    "results": Lazy(
        place="results:app", summary="List, show, export and import what was measured."
    ),
}


class Root(Group):
    """Lists every command from the table above; imports only the one that is run."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=lazy.summary, rich_markup_mode="rich")
            for name, lazy in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        name, listed, rest = super().resolve_command(ctx, args)
        return name, COMMANDS[name].load(name) if name in COMMANDS else listed, rest


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
