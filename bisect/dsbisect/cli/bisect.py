"""`bisect`: find where fast turns slow, among rows, or among commits of a repository."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from dsbisect.cli.bisect_commits import bisect_commits
from dsbisect.cli.common_options import in_clone
from dsbisect.cli.plan import plan
from dsbisect.cli.sought_load import RowsCircumstances, ask_rows
from dsbisect.cli.study_command import command_of
from dsbisect.studies import Rows


class Searches(TyperGroup):
    """Takes `rows` or `commits` by what stands there, where neither is the first word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["commits" if _of_commits(args) else "rows", *args]
        return super().parse_args(ctx, args)


def _of_commits(args: Sequence[str]) -> bool:
    """With a repository, or in one that has the ends: its own matrix is never asked for that."""
    if next(_values(args, "--repo"), None) is not None:
        return True
    ends = tuple(filter(None, _values(args, "--good", "--bad")))
    is_range = ".." in args[0]
    if not in_clone() or not (ends or is_range):
        return False
    from dsbuilds.history.repository import Repository
    from dsbuilds.history.revision import ends_of
    from dsharness.errors import SourceError

    try:
        repository = Repository.open(".")
        ends += ends_of(args[0]) if is_range else ()
        return all(map(repository.revision, ends))
    except SourceError:
        return False


def _values(args: Sequence[str], *options: str) -> Iterator[str]:
    """What is given to these options."""
    for word, after in zip(args, (*args[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        if option in options:
            yield value if equals else after


app = typer.Typer(
    cls=Searches,
    no_args_is_help=True,
    subcommand_metavar="[GOOD..BAD] [OPTIONS] | COMMAND ...",
    options_metavar="",
    help="""Find where fast turns slow: among rows, or among commits of a repository.

    Commits are meant with --repo, and in a clone by revisions that it has.

    Example: dsbisect bisect debian-12..debian-13 --workload bind-one

    Example: dsbisect bisect 2.0.16..2.0.17 --repo ~/src/server --workload bind-one""",
)
app.command("rows")(command_of(Rows, RowsCircumstances, ask_rows))
app.command("commits")(bisect_commits)
app.command("plan")(plan)
