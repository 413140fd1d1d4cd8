"""`bisect`: find where fast turns slow, among rows or among commits."""

from __future__ import annotations

import typer

from dsbisect.cli.commits import bisect_commits
from dsbisect.cli.rows import bisect_rows

app = typer.Typer(
    no_args_is_help=True, help="Find where fast turns slow: among rows, or among commits."
)
app.command("rows")(bisect_rows)
app.command("commits")(bisect_commits)
