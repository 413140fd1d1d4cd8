"""`bisect`: find where fast turns slow, among commits with a `--repo`, else among rows."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from dsbisect.cli.bisect_commits import bisect_commits
from dsbisect.cli.study_command import command_of
from dsbisect.studies import Rows


class Searches(TyperGroup):
    """Takes `rows` or `commits` by what stands there, where neither is the first word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            of_commits = any(word.partition("=")[0] == "--repo" for word in args)
            args = ["commits" if of_commits else "rows", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Searches,
    no_args_is_help=True,
    subcommand_metavar="[GOOD..BAD] [OPTIONS] | COMMAND ...",
    options_metavar="",
    help="""Find where fast turns slow: among commits with --repo, else among rows.

    Example: dsbisect bisect debian-12..debian-13 --workload bind-one

    Example: dsbisect bisect 2.0.16..2.0.17 --repo ~/src/server --workload bind-one""",
)
app.command("rows")(command_of(Rows))
app.command("commits")(bisect_commits)
