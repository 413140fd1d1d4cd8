"""A page in its forms: all say the answer, HTML says what is quiet, and no text is markup."""

from __future__ import annotations

import re

import pytest
from accessibility import needs_browser, serious
from hypothesis import given
from hypothesis import strategies as st
from seen_page import seen_page

from dsresults.page.chart import ChartLine, even_axis, line_chart, log_axis
from dsresults.page.page import (
    Bullets,
    Card,
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
    Table,
    badge,
    code,
    key,
    link,
    note,
    quiet,
    strong,
)
from dsresults.page.page_html import html_of
from dsresults.page.page_markdown import markdown_of
from dsresults.page.page_text import line_of, text_of


def chart() -> Content:
    lines = [
        ChartLine(name=name, title=f"{name} rises", points=[(1, 2), (9, high)], pattern=number)
        for number, (name, high) in enumerate({"first": 30, "second": 31}.items())
    ]
    return line_chart(
        title="A chart",
        caption="drawn",
        across=even_axis(10, str, "across"),
        up=log_axis([2, 31], "{:g} ms".format),
        lines=lines,
    )


def page(word: str = "word") -> Page:
    """One part of each kind, each with the word."""
    table = Table(
        columns=("name", "size", "empty"),
        caption=f"table {word}",
        rows=[
            (code(word), ("1,000", quiet("900 to 1100")), ""),
            Row(cells=((key(0), strong("other")), "2.5", ""), id="other"),
        ],
    )
    return Page(
        title=f"title {word}",
        about=[f"about {word}"],
        answer=[Card(headline=f"headline {word}", kind="slower", parts=[f"because {word}"])],
        parts=(
            Section(
                title=f"section {word}",
                id="here",
                parts=(
                    f"said {word}",
                    note(f"how to read {word}"),
                    table,
                    Grid(parts=[chart()]),
                    Facts(
                        facts={
                            "fact": (badge("slow"), f" {word}"),
                            "share": Meter(share=0.5, label=word),
                        }
                    ),
                    Bullets(items=[f"item {word}", link(word, "https://example.org/")]),
                    Listing(lines=[f"$ {word}", "again"]),
                    Fold(title="folded", parts=[Paragraph(words=f"hidden {word}")]),
                ),
            ),
        ),
    )


def test_each_form_says_the_answer_first() -> None:
    assert (
        text_of(page())
        == """title word
about word

headline word
because word

section word
said word
table word
  name    size
  word   1,000
  other    2.5

  fact: slow word
  share: word
  - item word
  - word
  $ word
  again"""
    )
    assert line_of(page()) == "headline word"
    markdown = markdown_of(page())
    assert markdown.startswith("# title word\n\nabout word\n\n**headline word**\n\nbecause word\n")
    assert "| name | size | empty |\n|---|---|---|\n| `word` | 1,000 |  |\n" in markdown
    assert "- [word](https://example.org/)" in markdown
    for form in (text_of(page()), markdown):
        assert not re.search("how to read|hidden|folded|900 to|A chart|drawn", form)


def test_html_has_all_of_it_with_names_for_each_reader() -> None:
    shown = seen_page(html_of(page()))
    words = shown.text
    for said in ("how to read word", "hidden word", "900 to 1100", "drawn", "first rises"):
        assert said in words
    assert [part.attributes["role"] for part in shown.all("svg") if "role" in part.attributes] == [
        "img"
    ]
    (drawing,) = (part for part in shown.all("svg") if "role" in part.attributes)
    names = [part.attributes.get("id") for part in drawing.all() if part.tag in {"title", "desc"}]
    assert (drawing.attributes["aria-labelledby"] or "").split() == names[:2]
    (table,) = shown.all("table")
    assert [cell.attributes["scope"] for cell in table.all("th")] == ["col"] * 3 + ["row"] * 2
    assert table.all("tr")[-1].attributes["id"] == "other"


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_no_word_is_ever_markup(word: str) -> None:
    plain, evil = (html_of(page(text)) for text in ("word", f"<b onclick='x'>{word}&amp;\"</b>"))
    tags = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9]*)")
    assert tags.findall(plain) == tags.findall(evil)
    seen_page(evil)


@given(st.text(min_size=1))
def test_no_word_drives_a_terminal_or_formats_markdown(word: str) -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text_of(page(word)))
    lines = markdown_of(page(f"*{word}*")).splitlines()
    assert lines[0].startswith("# title ")
    assert "\\*" in lines[0]


def test_nobody_is_mentioned_by_markdown() -> None:
    markdown = markdown_of(Page(title="t", parts=["@somebody #1 <b>"]))
    assert "@\u2060somebody" in markdown
    assert "#\u20601" in markdown
    assert "\\<b\\>" in markdown


def test_only_a_page_that_can_be_sorted_has_a_script() -> None:
    bare, sortable = html_of(Page(title="t")), html_of(Page(title="t", sortable=True))
    assert "<script" not in bare
    assert "script-src" not in bare
    assert sortable.count("<script") == 1
    assert "script-src 'sha256-" in sortable


@pytest.mark.parametrize("every_s", [None, 5])
def test_a_page_that_changes_is_read_again(every_s: int | None) -> None:
    assert (
        'http-equiv="refresh" content="5"' in html_of(Page(title="t", every_s=every_s))
    ) is bool(every_s)


@needs_browser
@pytest.mark.whole
def test_nothing_of_the_page_is_hidden_from_any_reader() -> None:
    assert serious(html_of(page())) == []
