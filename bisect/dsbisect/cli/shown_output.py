"""All that is printed goes through here: no text of others steers the terminal.

Names of commits, subjects, what servers and services said, what is stored: any of it may hold
control characters, or marks that turn the direction of what is read. They are shown by number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from dsharness.plain_text import shown

if TYPE_CHECKING:
    from rich.console import Console


class ShownText:
    """A stream of text, on which control characters but ends of lines and tabs are shown."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream  # where rich writes: its own codes steer the terminal

    def write(self, text: str) -> int:
        self.rich_proxied_file.write(shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        if name == "buffer":  # nothing is written past this
            raise AttributeError(name)
        return getattr(self.rich_proxied_file, name)


@contextmanager
def shown_output() -> Iterator[None]:
    """Standard output and error show what they are given, in the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", ShownText(each)) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def shown_console(
    *, stderr: bool = False, highlight: bool = True, markup: bool = True, width: int | None = None
) -> Console:
    """Where tables and progress are printed: rich's own codes pass, those of texts are shown."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text

    class ShownConsole(Console):
        def render_str(self, text: str, **how: Any) -> Text:  # noqa: ANN401 - rich's own types
            return super().render_str(shown(text), **how)

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                if style is not None and style.link:
                    style = style.update_link(None)  # noqa: PLW2901
                yield Segment(text if control else shown(text), style, control)

    return ShownConsole(stderr=stderr, highlight=highlight, markup=markup, width=width)
