"""What a command that writes a page ends with: its answer, the page's path, its status."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import typer

from dsharness.errors import ExitCode


class Answer(Protocol):
    """What was found."""

    @property
    def inconclusive(self) -> bool: ...

    def model_dump_json(self, *, indent: int) -> str: ...


def tell_answer(found: Answer, told: Iterable[str], page: Path, *, as_json: bool) -> None:
    """Print it, as text with the page's path or as JSON; exit with 20 if it is inconclusive."""
    typer.echo(found.model_dump_json(indent=2) if as_json else "\n".join((*told, str(page))))
    if found.inconclusive:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
