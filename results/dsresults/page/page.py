"""A page as a value: the sentences of its answer, then tables, charts and notes.

HTML, text and Markdown are made of the same page. What is quiet, folded or drawn is for readers of
HTML only; everything else stands in all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, Union
from xml.etree.ElementTree import Element

from dsresults.number_text import significant
from dsresults.page.chart import Chart

QUIET = "quiet"
UNKNOWN = "–"  # noqa: RUF001 - a dash in a table

Content: TypeAlias = Union[
    str,
    "Span",
    "Meter",
    "Paragraph",
    "Bullets",
    "Facts",
    "Listing",
    "Table",
    "Fold",
    "Section",
    "Card",
    "Grid",
    Chart,
    Element,  # drawn within a line
    tuple["Content", ...],
]


@dataclass(frozen=True, kw_only=True)
class Span:
    """Words within a line that are more than words: code, a badge, a link."""

    words: Content
    kind: str = ""
    link: str = ""
    hint: str = ""  # for who points at it


def code(words: Content, link: str = "") -> Span:
    return Span(words=words, kind="code", link=link)


def strong(words: Content) -> Span:
    return Span(words=words, kind="strong")


def quiet(words: Content) -> Span:
    return Span(words=words, kind=QUIET)


def badge(word: str, kind: str | None = None) -> Span:
    """Return a word in a coloured box; the colour is that of the word, if none is named."""
    return Span(words=word, kind=f"badge {word.replace(' ', '-') if kind is None else kind}")


def link(words: Content, target: str) -> Span:
    return Span(words=words, link=target)


def key(pattern: int | None) -> Content:
    """Return a piece of a chart's line, which stands before the name of what it shows."""
    return "" if pattern is None else Span(words="", kind=f"key pattern-{pattern}")


@dataclass(frozen=True, kw_only=True)
class Meter:
    """A share, drawn within a line."""

    share: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A sentence or more; without a kind it is written as its words alone."""

    words: Content
    kind: str = ""


def note(*words: Content) -> Paragraph:
    """Return how to read what stands next to it, for readers of HTML."""
    return Paragraph(words=words, kind=QUIET)


@dataclass(frozen=True, kw_only=True)
class Bullets:
    """A list; of an ordered one the items follow each other in time or weight."""

    items: Sequence[Content]
    kind: str = ""
    ordered: bool = False


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Terms, and what is said of each."""

    facts: Mapping[str, Content]
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Lines as they are: a command, a log."""

    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Column:
    """The heading of a column, and the kind of all its cells."""

    title: Content
    kind: str = ""
    hint: str = ""
    workload: str = ""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell that is more than its content."""

    content: Content
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row that one can lead to, or that looks unlike others."""

    cells: Sequence[Content | Cell]
    kind: str = ""
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows under headings; the first cells of each are its headings."""

    columns: Sequence[Content | Column]
    rows: Sequence[Row | Sequence[Content | Cell]]
    caption: Content = ""
    kind: str = ""
    headed: int = 1

    @property
    def heads(self) -> tuple[Column, ...]:
        return tuple(
            column if isinstance(column, Column) else Column(title=column)
            for column in self.columns
        )

    @property
    def lines(self) -> tuple[Row, ...]:
        return tuple(row if isinstance(row, Row) else Row(cells=row) for row in self.rows)


@dataclass(frozen=True, kw_only=True)
class Fold:
    """What is there behind a click, in HTML only."""

    title: Content
    parts: Sequence[Content]
    kind: str = ""
    open: bool = False
    workload: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, and what stands under it."""

    title: Content
    parts: Sequence[Content]
    kind: str = ""
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Card:
    """An answer in a box: its headline, and what it rests on."""

    title: Content = ""
    headline: Content = ""
    parts: Sequence[Content] = ()
    kind: str = ""  # slower, faster
    workload: str = ""
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Parts next to each other where there is room; one with a name is scrolled by its keys."""

    parts: Sequence[Content]
    kind: str = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a question is answered with."""

    title: str
    heading: Content = ""  # the title, unless it is more than words
    about: Sequence[Content] = ()  # lines under the heading: of what, when
    answer: Sequence[Card] = ()
    parts: Sequence[Content] = ()
    key: str = ""  # by which a written page is known to say the same
    every_s: int | None = None  # after so many seconds a browser reads it again
    above: Content = ""  # where it belongs to, as a link
    sortable: bool = False  # by the one script that a page may have


class Answer(Protocol):
    """What a study returns: its figures, whether they answer the question, and its page."""

    @property
    def inconclusive(self) -> bool: ...

    def page(self) -> Page: ...

    def model_dump_json(self, *, indent: int) -> str: ...


def or_dash(value: float | None, spelled: Callable[[float], str] = significant) -> str:
    """Return a figure, or the dash of a table where there is none."""
    return UNKNOWN if value is None else spelled(value)


def plain_words(content: Content, *, quietly: bool = False) -> str:
    """Return the words of a line alone; ``quietly`` with those that are for HTML only."""
    match content:
        case str():
            return content
        case tuple():
            return "".join(plain_words(part, quietly=quietly) for part in content)
        case Span():
            hidden = QUIET in content.kind.split() and not quietly
            return "" if hidden else plain_words(content.words, quietly=quietly)
        case Paragraph() if content.kind != QUIET or quietly:
            return plain_words(content.words, quietly=quietly)
        case Meter():
            return content.label
    return ""
