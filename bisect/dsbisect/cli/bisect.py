"""`bisect rows` and `bisect commits`: find where fast turns slow."""

from __future__ import annotations

import typer

from dsbisect.cli.bisect_commits import bisect_commits
from dsbisect.cli.study_command import command_of
from dsbisect.studies import Rows

app = typer.Typer(
    no_args_is_help=True, help="Find where fast turns slow: among rows, or among commits."
)
app.command("rows")(command_of(Rows))
app.command("commits")(bisect_commits)
