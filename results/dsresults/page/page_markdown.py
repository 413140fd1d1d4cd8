"""A page as Markdown, for a place that shows no page.

What a commit or a matrix says means itself: no character of it formats anything, and nobody is
mentioned by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

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


def markdown_of(page: Page, *, quietly: bool = False) -> str:
    """Return the whole page but for what is folded or drawn; ``quietly`` with its quiet words."""
    lines = [*_Markdown(quietly=quietly).page(page)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


@dataclass(frozen=True, kw_only=True)
class _Markdown:
    """The lines of parts; quiet paragraphs say how to read a page of HTML, and are in none."""

    quietly: bool

    def page(self, page: Page) -> Iterator[str]:
        yield f"# {self.inline(page.heading or page.title)}"
        for about in page.about:
            yield from ("", self.inline(about))
        for card in page.answer:
            yield from self.card(card)
        yield from self.parts(page.parts, 2)

    def parts(self, parts: Iterable[Content], level: int) -> Iterator[str]:
        for part in parts:
            yield from self.part(part, level)

    def part(self, part: Content, level: int) -> Iterator[str]:  # noqa: C901 - a case for each kind
        match part:
            case Section():
                yield from ("", f"{'#' * level} {self.inline(part.title)}")
                yield from self.parts(part.parts, level + 1)
            case Card():
                yield from self.card(part)
            case Grid():
                yield from self.parts(part.parts, level)
            case Table():
                yield from self.table(part)
            case Facts():
                yield ""
                for name, fact in part.facts.items():
                    if text := self.inline(fact):
                        yield f"- {words(name)}: {text}"
            case Bullets():
                yield from ("", *(f"- {self.inline(item)}" for item in part.items))
            case Listing():
                yield from ("", *block(part.lines))
            case Paragraph() if part.kind == QUIET:
                return
            case Paragraph() if part.kind == "lead":
                yield from ("", f"**{self.inline(part)}**")
            case str() | tuple() | Span() | Meter() | Paragraph():
                yield from ("", self.inline(part))

    def card(self, card: Card) -> Iterator[str]:
        if title := self.inline(card.title):
            yield from ("", title)
        if headline := self.inline(card.headline):
            yield from ("", f"**{headline}**")
        yield from self.parts(card.parts, 3)

    def table(self, page_table: Table) -> Iterator[str]:
        yield ""
        if caption := self.inline(page_table.caption):
            yield from (caption, "")
        yield from table(
            [self.inline(head.title) for head in page_table.heads],
            (
                [
                    self.inline(cell.content if isinstance(cell, Cell) else cell)
                    for cell in row.cells
                ]
                for row in page_table.lines
            ),
        )

    def inline(self, content: Content) -> str:
        match content:
            case str():
                return words(content)
            case tuple():
                return self.joined(content)
            case Meter():
                return words(content.label)
            case Paragraph() if content.kind != QUIET:
                return self.inline(content.words)
            case Span() if self.quietly or QUIET not in content.kind.split():
                return self.span(content)
        return ""

    def joined(self, parts: Iterable[Content]) -> str:
        """Join them with the spaces that stand at their ends; of facts each is an item."""
        pieces: list[str] = []
        before: Content = ""
        for part in parts:
            inside = self.inline(part)
            if isinstance(part, str) and part.strip(" ") != part:
                inside = f"{' ' * part.startswith(' ')}{inside}{' ' * part.endswith(' ')}"
            if isinstance(part, Span) and inside and pieces and not pieces[-1].endswith(" "):
                pieces.append(", " if _is_item(before) and _is_item(part) else _space(part))
            pieces.append(inside)
            before = part
        return re.sub(" {2,}", " ", "".join(pieces)).strip()

    def span(self, span: Span) -> str:
        if span.kind == "code" and isinstance(span.words, str):
            inside = code(span.words)
        else:
            inside = self.inline(span.words)
        if span.kind in {"strong", "b"} and inside:
            inside = f"**{inside}**"
        if span.kind == QUIET and len(inside) > 1:
            inside = f"*{inside}*"
        return f"[{inside}]({span.link})" if re.match("https?://", span.link) else inside


def _is_item(part: Content) -> bool:
    """Whether a browser shows it on a line of its own."""
    return isinstance(part, Span) and part.kind in {"", "fact"} and not part.link


def _space(part: Span) -> str:
    return " " if part.kind == QUIET else ""
