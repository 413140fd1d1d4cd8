"""An HTML page as a reader sees it: the texts of its parts, without markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "br", "img", "hr", "input"})
HIDDEN = frozenset({"style", "script"})
BLOCKS = frozenset(
    {"p", "br", "li", "dt", "dd", "h1", "h2", "h3", "td", "th", "tr", "caption", "pre", "summary",
     "section", "article", "text", "span"}
)  # fmt: skip


@dataclass(kw_only=True)
class Part:
    """An element, with the parts in it; texts are its own parts without a tag."""

    tag: str = ""
    attributes: dict[str, str | None] = field(default_factory=dict)
    parts: list[Part | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All of it, with single spaces; parts that stand apart on a page are apart here too."""
        return " ".join(self._words().split())

    def _words(self) -> str:
        if self.tag in HIDDEN:
            return ""
        said = "".join(part if isinstance(part, str) else part._words() for part in self.parts)
        return f" {said} " if self.tag in BLOCKS else said

    def all(self, tag: str = "", css_class: str = "") -> list[Part]:
        """Every element in it with that tag and class, in order."""
        found = []
        for part in self.parts:
            if isinstance(part, str):
                continue
            classes = (part.attributes.get("class") or "").split()
            if tag in {"", part.tag} and (not css_class or css_class in classes):
                found.append(part)
            found += part.all(tag, css_class)
        return found

    def texts(self, tag: str = "", css_class: str = "") -> list[str]:
        return [part.text for part in self.all(tag, css_class)]

    @property
    def rows(self) -> list[list[str]]:
        """Of a table: the texts of its cells, its headings first."""
        return [[c.text for c in row.all() if c.tag in {"td", "th"}] for row in self.all("tr")]

    @property
    def facts(self) -> dict[str, str]:
        """Of a list of terms: what is said of each."""
        return dict(zip(self.texts("dt"), self.texts("dd"), strict=True))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Part()]

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        part = Part(tag=tag, attributes=dict(attrs))
        self.open[-1].parts.append(part)
        if tag not in VOID:
            self.open.append(part)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.open[-1].parts.append(Part(tag=tag, attributes=dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag, f"</{tag}> at {self.getpos()} closes another element"

    def handle_data(self, data: str) -> None:
        self.open[-1].parts.append(data)


def seen_page(html: str) -> Part:
    """The page; AssertionError where an element is not closed, or another one is."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    (root,) = reader.open
    return root
