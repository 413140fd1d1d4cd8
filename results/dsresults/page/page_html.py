"""A page as HTML that needs nothing else: a tree of elements, so that no text is ever markup."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dsresults.number_text import chance_text
from dsresults.page.chart import Chart, shape
from dsresults.page.page import (
    Bullets,
    Card,
    Cell,
    Column,
    Content,
    Facts,
    Fold,
    Grid,
    Listing,
    Meter,
    Page,
    Paragraph,
    Row,
    Section,
    Span,
    Table,
    plain_words,
)

TAGS = {"code": "code", "strong": "strong", "b": "b"}
INLINE = (str, Span, Meter, Element)


def html_of(page: Page) -> str:
    """Return the whole document."""
    body = _Body()
    script = _source("page.js")
    document = (
        _environment()
        .get_template("page.html.jinja")
        .render(
            page=page,
            heading=body.written("h1", page.heading or page.title),
            above=body.written("p", page.above) if page.above else "",
            about=[body.written("p", words, kind="quiet") for words in page.about],
            parts=[_markup(part) for part in body.page(page)],
            style=_source("page.css"),
            script=script,
            script_hash=_hash(script),
        )
    )
    return document + "\n"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("dsresults"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _source(name: str) -> Markup:
    """Return a file of our own, as it stands between its tags."""
    loader = PackageLoader("dsresults")
    return Markup(loader.get_source(_environment(), name)[0])  # noqa: S704 - our own file


def _hash(text: str) -> str:
    """Return by what a content security policy allows a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def figure_text(chart: Chart, *, dark: bool | None = None) -> str:
    """Return a chart as an SVG file of its own, twice as large as on a page.

    It is dark where its viewer likes that, or as ``dark`` says.
    """
    drawing = chart.drawn(
        "figure",
        xmlns="http://www.w3.org/2000/svg",
        width=f"{(chart.width + 20) * 2:g}",
        height=f"{(chart.height + 12) * 2:g}",
    )
    wide, high = chart.width + 20, chart.height + 12
    drawing.set("viewBox", f"-10 -6 {wide:g} {high:g}")
    paper = shape("rect", x=-10, y=-6, width=wide, height=high, kind="paper")
    drawing[2:2] = [shape("style", _figure_style(dark=dark)), paper]
    return ET.tostring(drawing, encoding="unicode") + "\n"


def _figure_style(*, dark: bool | None) -> str:
    """Return the page's rules for drawings with colours as such: programs for talks know no var().

    The font is whatever sans-serif is there.
    """
    css = str(_source("page.css"))
    light_colours, dark_colours = (
        dict(re.findall(r"--([\w-]+): ([^;]+);", block))
        for block in re.findall(r":root \{(.*?)\}", css, re.DOTALL)[:2]
    )
    rules = "\n".join(line for line in css.splitlines() if line.startswith("svg "))
    rules = re.sub(r"font: (\w+) [^;]+;", r"font-family: sans-serif; font-size: \1;", rules)
    light_rules, dark_rules = (
        VARIABLE.sub(lambda match: colours.get(match[1], "none"), rules)  # noqa: B023
        for colours in (light_colours, dark_colours)
    )
    if dark is not None:
        return dark_rules if dark else light_rules
    return f"{light_rules}\n@media (prefers-color-scheme: dark) {{\n{dark_rules}\n}}"


VARIABLE = re.compile(r"var\(--([\w-]+)\)")


def _markup(made: Element) -> Markup:
    """As XML, which escapes more in attributes than HTML; each element in it has an end."""
    text = ET.tostring(made, encoding="unicode", short_empty_elements=False)
    return Markup(text)  # noqa: S704 - every text in it is escaped by its serializer


class _Body:
    """Writes one page: charts and headings have numbers of their own."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def page(self, page: Page) -> Iterator[Element]:
        if page.answer:
            cards = (self._card(card, 3) for card in page.answer)
            yield element("section", *cards, kind="answers", aria_label="Answer")
        yield from self._parts(page.parts, 2)

    def written(self, tag: str, words: Content, **facts: str) -> Markup:
        return _markup(element(tag, *self._line(words), **facts))

    def _parts(self, parts: Iterable[Content], level: int) -> Iterator[Element]:
        for part in parts:
            yield from self._part(part, level)

    def _part(  # noqa: C901 - a case for each kind
        self, part: Content, level: int
    ) -> Iterator[Element]:
        match part:
            case Paragraph():
                yield element("p", *self._line(part.words), kind=part.kind)
            case Section():
                yield self._section(part, level)
            case Card():
                yield self._card(part, level)
            case Grid():
                named = {"tabindex": "0", "role": "region"} if part.label else {}
                yield element(
                    "div",
                    *self._parts(part.parts, level),
                    kind=part.kind,
                    aria_label=part.label,
                    **named,
                )
            case Chart():
                yield self._figure(part)
            case Table():
                kind = "wide" if "candidates" not in part.kind.split() else ""
                yield element("div", self._table(part), kind=kind)
            case Fold():
                yield self._fold(part, level)
            case Facts():
                terms = (self._fact(name, said) for name, said in part.facts.items())
                yield element("dl", *(one for pair in terms for one in pair), kind=part.kind)
            case Bullets():
                items = (element("li", *self._mixed(item, level)) for item in part.items)
                yield element("ol" if part.ordered else "ul", *items, kind=part.kind)
            case Listing():
                yield element("pre", "\n".join(part.lines))
            case _:
                yield element("p", *self._line(part))

    def _mixed(self, content: Content, level: int) -> Iterator[Element | str]:
        """Words within a line, and parts that stand alone."""
        if isinstance(content, tuple):
            for part in content:
                yield from self._mixed(part, level)
        elif isinstance(content, INLINE):
            yield from self._line(content)
        else:
            yield from self._part(content, level)

    def _line(self, content: Content) -> Iterator[Element | str]:
        match content:
            case str():
                yield content
            case tuple():
                for part in content:
                    yield from self._line(part)
            case Span():
                yield self._span(content)
            case Element():
                yield content
            case Meter():
                said = chance_text(content.share)
                yield element(
                    "meter",
                    said,
                    min="0",
                    max="1",
                    value=f"{content.share:g}",
                    aria_label=content.label,
                )
            case _:
                yield from self._part(content, 3)

    def _span(self, span: Span) -> Element:
        words = list(self._line(span.words))
        if span.kind.startswith("key "):
            stroke = shape("line", x1=0, x2=44, y1=5, y2=5, kind="curve")
            return shape("svg", stroke, kind=span.kind, viewBox="0 0 44 10", aria_hidden="true")
        tag = TAGS.get(span.kind, "span")
        inside = (
            element(tag, *words, kind="" if tag != "span" else span.kind) if span.kind else None
        )
        if not span.link:
            return inside if inside is not None else element("span", *words, title=span.hint)
        shown = [inside] if inside is not None else words
        return element("a", *shown, href=span.link, rel="noreferrer")

    def _section(self, section: Section, level: int) -> Element:
        name = section.id or f"s{next(self._numbers)}"
        heading = element(f"h{level}", *self._line(section.title), id=f"{name}-title")
        inside = self._parts(section.parts, level + 1)
        facts = {"id": section.id, "aria_labelledby": f"{name}-title"}
        return element("section", heading, *inside, kind=section.kind, **facts)

    def _card(self, card: Card, level: int) -> Element:
        kind = card.kind if card.kind == "plain" else f"answer {card.kind}".strip()
        title = [element(f"h{level}", *self._line(card.title))] if card.title else []
        headline = Paragraph(words=card.headline, kind="headline")
        inside = self._parts(([headline] if card.headline else []) + [*card.parts], level)
        return element("article", *title, *inside, kind=kind, id=card.id, **_of(card.workload))

    def _fold(self, fold: Fold, level: int) -> Element:
        summary = element("summary", *self._line(fold.title))
        return element(
            "details",
            summary,
            *self._parts(fold.parts, level),
            kind=fold.kind,
            **_of(fold.workload),
            **({"open": "open"} if fold.open else {}),
        )

    def _fact(self, name: str, said: Content) -> tuple[Element, Element]:
        return element("dt", name), element("dd", *self._mixed(said, 3))

    def _figure(self, chart: Chart) -> Element:
        caption = [element("figcaption", chart.caption)] if chart.caption else []
        drawing = chart.drawn(str(next(self._numbers)))
        return element("figure", *caption, drawing, kind=chart.kind, **_of(chart.workload))

    def _table(self, table: Table) -> Element:
        caption = [element("caption", *self._line(table.caption))] if table.caption else []
        heads = (
            element(
                "th",
                *self._line(head.title),
                kind=head.kind,
                scope="col",
                title=head.hint,
                **_of(head.workload),
            )
            for head in table.heads
        )
        rows = (self._row(row, table) for row in table.lines)
        return element(
            "table",
            *caption,
            element("thead", element("tr", *heads)),
            element("tbody", *rows),
            kind=table.kind,
        )

    def _row(self, row: Row, table: Table) -> Element:
        pairs = zip(row.cells, table.heads, strict=True)
        cells = (
            self._cell(cell, head, headed=number < table.headed)
            for number, (cell, head) in enumerate(pairs)
        )
        return element("tr", *cells, kind=row.kind, id=row.id)

    def _cell(self, cell: Content | Cell, head: Column, *, headed: bool) -> Element:
        content, kind = (cell.content, cell.kind) if isinstance(cell, Cell) else (cell, "")
        inside = self._mixed(content, 3)
        kinds = f"{head.kind} {kind}".strip()
        if headed:
            return element("th", *inside, kind=kinds, scope="row")
        named = plain_words(head.title, quietly=True)
        return element("td", *inside, kind=kinds, data_label=named, **_of(head.workload))


def _of(workload: str) -> dict[str, str]:
    return {"data_workload": workload} if workload else {}


def element(tag: str, *inside: Element | str, kind: str = "", **facts: str) -> Element:
    """Return an element of HTML; facts without a value are left out."""
    made = Element(tag, {"class": kind} if kind else {})
    for name, fact in facts.items():
        if fact:
            made.set(name.replace("_", "-"), fact)
    last: Element | None = None
    for part in inside:
        if not isinstance(part, str):
            made.append(part)
            last = part
        elif last is None:
            made.text = (made.text or "") + part
        else:
            last.tail = (last.tail or "") + part
    return made
