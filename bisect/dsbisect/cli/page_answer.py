"""What a command that writes a page ends with: its answer, the page's path, its status."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dsharness.errors import ExitCode

if TYPE_CHECKING:
    from dsresults.page.page import Answer


def tell_answer(answer: Answer, page: Path, *, as_json: bool) -> None:
    """Print it, as text with the page's path or as JSON; exit with 20 if it is inconclusive."""
    from dsresults.page.page_text import text_of

    told = answer.model_dump_json(indent=2) if as_json else f"{text_of(answer.page())}\n\n{page}"
    typer.echo(told)
    if answer.inconclusive:
        raise typer.Exit(ExitCode.INCONCLUSIVE)
