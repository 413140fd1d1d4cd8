"""A page as plain text for a terminal: what is quiet, folded or drawn is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

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
    plain_words,
)

_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # what others wrote must not control it
_FIGURE = re.compile("[0-9–+−×-][0-9 .,×–%/s-]*")  # noqa: RUF001 - dashes and signs of figures


def text_of(page: Page) -> str:
    """Return the answer first, then the tables and sentences it rests on."""
    lines = [plain_words(page.heading or page.title), *map(plain_words, page.about), ""]
    lines += _parts(page.answer)
    for part in page.parts:
        lines += ("", *_part(part))
    text = "\n".join(lines)
    return re.sub(r"\n{3,}", "\n\n", _CONTROLS.sub("?", text)).strip("\n")


def line_of(page: Page) -> str:
    """Return the headlines of the answer on one line, as a list of answers has it."""
    return "; ".join(filter(None, (_words(card.headline).rstrip(".") for card in page.answer)))


def _part(part: Content) -> Iterator[str]:  # noqa: C901 - a case for each kind
    match part:
        case Section():
            yield from ("", plain_words(part.title), *_parts(part.parts))
        case Card():
            yield from _card(part)
        case Grid():
            yield from _parts(part.parts)
        case Table():
            yield from (*_table(part), "")
        case Facts():
            for name, said in part.facts.items():
                if words := plain_words(said):
                    yield f"  {name}: {words}"
        case Bullets():
            yield from (f"  - {plain_words(item)}" for item in part.items)
        case Listing():
            yield from (f"  {line}" for line in part.lines)
        case Paragraph() if part.kind == QUIET:
            return
        case str() | tuple() | Span() | Meter() | Paragraph():
            yield plain_words(part)


def _parts(parts: Iterable[Content]) -> Iterator[str]:
    for part in parts:
        yield from _part(part)


def _card(card: Card) -> Iterator[str]:
    """A headline alone is a line; what it rests on makes it a paragraph."""
    if card.title or card.parts:
        yield ""
    yield from filter(None, map(plain_words, (card.title, card.headline)))
    yield from _parts(card.parts)


def _table(table: Table) -> Iterator[str]:
    """Yield rows whose cells stand under each other: figures on the right, words on the left."""
    if caption := plain_words(table.caption):
        yield caption
    heads = [_words(head.title) for head in table.heads]
    rows = [[_words(cell) for cell in row.cells] for row in table.lines]
    columns = [column for column in zip(heads, *rows, strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    right = [all(_FIGURE.fullmatch(cell) for cell in column[1:] if cell) for column in columns]
    for row in zip(*columns, strict=True):
        cells = (
            cell.rjust(width) if figures else cell.ljust(width)
            for cell, width, figures in zip(row, widths, right, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _words(cell: Content | Cell) -> str:
    words = plain_words(cell.content if isinstance(cell, Cell) else cell)
    return " ".join(words.split())
