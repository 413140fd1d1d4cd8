"""A page as Markdown, for a place that shows no page.

What a commit or a matrix says means itself: no character of it formats anything, and nobody is
mentioned by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dsharness.plain_text import plain
from dsresults.page.page import (
    QUIET,
    Bullets,
    Card,
    Cell,
    Content,
    Facts,
    Grid,
    Listing,
    Meter,
    Page,
    Paragraph,
    Section,
    Span,
    Table,
)

TICKS = re.compile("`+")
MARKS = re.compile(r"([\\`*_\[\]<>|#~@])")


def code(text: str) -> str:
    """Return a text on one line as a span of code, whatever it holds."""
    line = " ".join(plain(text).split())
    fence = "`" * (max(map(len, TICKS.findall(line)), default=0) + 1)
    inside = f" {line} " if line.startswith("`") or line.endswith("`") else line
    return f"{fence}{inside}{fence}" if line else ""


def words(text: str) -> str:
    """Return a text on one line that means itself; a name after @ mentions no account."""
    line = " ".join(plain(text).split())
    return MARKS.sub(r"\\\1", line).replace("\\@", "@\u2060").replace("\\#", "#\u2060")


def block(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as they are, in a fence that nothing inside ends."""
    plain_lines = [plain(line) for line in lines]
    longest = max((len(run) for line in plain_lines for run in TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (fence, *plain_lines, fence)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table; cells are Markdown already."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def markdown_of(page: Page) -> str:
    """Return the whole page but for what is quiet, folded or drawn."""
    lines = [f"# {_inline(page.heading or page.title)}"]
    for about in page.about:
        lines += ["", _inline(about)]
    for card in page.answer:
        lines += _card(card)
    lines += _parts(page.parts, 2)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def _parts(parts: Iterable[Content], level: int) -> Iterator[str]:
    for part in parts:
        yield from _part(part, level)


def _part(part: Content, level: int) -> Iterator[str]:  # noqa: C901 - a case for each kind
    match part:
        case Section():
            yield from ("", f"{'#' * level} {_inline(part.title)}")
            yield from _parts(part.parts, level + 1)
        case Card():
            yield from _card(part)
        case Grid():
            yield from _parts(part.parts, level)
        case Table():
            yield from _table(part)
        case Facts():
            yield ""
            for name, fact in part.facts.items():
                if text := _inline(fact):
                    yield f"- {words(name)}: {text}"
        case Bullets():
            yield from ("", *(f"- {_inline(item)}" for item in part.items))
        case Listing():
            yield from ("", *block(part.lines))
        case Paragraph() if part.kind == QUIET:
            return
        case str() | tuple() | Span() | Meter() | Paragraph():
            yield from ("", _inline(part))


def _card(card: Card) -> Iterator[str]:
    if title := _inline(card.title):
        yield from ("", title)
    if headline := _inline(card.headline):
        yield from ("", f"**{headline}**")
    yield from _parts(card.parts, 3)


def _table(page_table: Table) -> Iterator[str]:
    yield ""
    if caption := _inline(page_table.caption):
        yield from (caption, "")
    yield from table(
        [_inline(head.title) for head in page_table.heads],
        (
            [_inline(cell.content if isinstance(cell, Cell) else cell) for cell in row.cells]
            for row in page_table.lines
        ),
    )


def _inline(content: Content) -> str:
    match content:
        case str():
            return words(content)
        case tuple():
            return _joined(content)
        case Meter():
            return words(content.label)
        case Paragraph() if content.kind != QUIET:
            return _inline(content.words)
        case Span() if QUIET not in content.kind.split():
            return _span(content)
    return ""


def _joined(parts: Iterable[Content]) -> str:
    """Join them with the spaces that stand at their ends."""
    pieces: list[str] = []
    for part in parts:
        inside = _inline(part)
        if isinstance(part, str) and part.strip(" ") != part:
            inside = f"{' ' * part.startswith(' ')}{inside}{' ' * part.endswith(' ')}"
        pieces.append(inside)
    return "".join(pieces).strip()


def _span(span: Span) -> str:
    if span.kind == "code" and isinstance(span.words, str):
        inside = code(span.words)
    else:
        inside = _inline(span.words)
    if span.kind in {"strong", "b"} and inside:
        inside = f"**{inside}**"
    return f"[{inside}]({span.link})" if re.match("https?://", span.link) else inside
