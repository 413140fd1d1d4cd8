"""The page of a real search in a real browser: its facts, that it asks for nothing, its picture.

The search is `tests/real/debian.jsonl`. To measure it again:

    dsbisect bisect rows --series debian --store /tmp/debian.db
    dsbisect results export --store /tmp/debian.db tests/real/debian.jsonl
    make report-picture
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
from pathlib import Path

import pytest
from accessibility import BROWSER, serious
from browser import browse, looked_at
from seen_page import Part, seen_page
from shipped import MATRIX

from dsresults.page.page_html import figure_text
from dsresults.report import ReportData, report_data, write_report
from dsresults.report.answer_slide import answer_slide
from dsresults.store import Store

ROOT = Path(__file__).parents[3]
REAL = ROOT / "tests/real/debian.jsonl"
WIDTH, HEIGHT = 1000, 1040  # of the picture

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("real")
    with Store.open(folder / "store.db") as store, REAL.open(encoding="utf-8") as lines:
        store.import_jsonl(lines)
        campaigns = store.campaigns()
        samples, images = store.measured_in(campaigns)
    return write_report(folder / "out", report_data(MATRIX, campaigns, samples, images))


def test_the_page_that_a_browser_shows_has_each_answer_and_each_figure(tmp_path, page):
    told = json.loads(page.with_name("report.json").read_text(encoding="utf-8"))
    (section,) = told["sections"]
    columns = section["comparison"]["columns"]
    shown: Part = seen_page(browse(tmp_path, page, "--dump-dom"))
    found = [column["boundary"] for column in columns]
    assert [(one["before"], one["after"]) for one in found] == [
        ("debian-12", "debian-13"), ("debian-11", "debian-12"),
    ]  # fmt: skip
    for lead, one in zip(shown.texts("p", "lead"), found, strict=True):
        assert re.search(rf"{one['after']} is [\d.]+ times slower than {one['before']}", lead)
    (table,) = shown.all("table", "candidates")
    assert [row.all("th")[0].text.split()[0] for row in table.all("tr")[1:]] == [
        "debian-11", "debian-12", "debian-13", "debian-sid",
    ]  # fmt: skip
    assert [part.text.split()[0] for part in table.all("td", "first-changed")] == ["slow"] * 2
    assert len(table.all("td", "figures")) == 4 * len(columns)
    assert len(shown.all("svg")) >= len(columns)
    assert len(shown.all("line", "boundary")) == sum(len(one["steps"]) for one in found)


@pytest.mark.parametrize(
    ("dark", "paper"), [(False, "rgb(255, 255, 255)"), (True, "rgb(20, 24, 29)")]
)
def test_it_fits_keeps_names_whole_and_asks_for_nothing(tmp_path, page, dark, paper):
    for width, seen in looked_at(tmp_path, page, 400, 800, 950, 1280, dark=dark).items():
        assert seen["width"] <= int(width)
        assert (seen["paper"], seen["requests"]) == (paper, [])
        assert seen["names"] == [1] * 4, f"a row's name is broken at {width} pixels"


def test_no_label_of_a_drawing_touches_another_one_or_leaves_it(tmp_path, page):
    """The page's charts, and the slide as large and as small as it is looked at."""
    slide = answer_slide(ReportData.model_validate_json(page.with_name("report.json").read_text()))
    text = figure_text(slide).replace('width="2560"', 'width="100%"').replace('height="1440"', "")
    alone = tmp_path / "slide.html"
    alone.write_text(f"<!doctype html><body style='margin:0'>{text}", encoding="utf-8")
    for shown in (page, alone):
        for width, seen in looked_at(tmp_path, shown, 400, 1280).items():
            assert seen["touching"] == [], f"{shown.name} at {width} pixels"


def test_labels_that_touch_would_be_noticed(tmp_path):
    page = tmp_path / "touch.html"
    texts = (
        "<text x='0' y='20'>one</text><text x='9' y='22'>two</text><text x='390' y='90'>far</text>"
    )
    page.write_text(f"<svg viewBox='0 0 400 99'>{texts}</svg>", encoding="utf-8")
    assert looked_at(tmp_path, page, 400)["400"]["touching"] == ["one | two", "far"]


def test_a_page_that_asks_for_something_would_be_noticed(tmp_path):
    page = tmp_path / "asks.html"
    page.write_text('<body><img src="http://example.invalid/x.png">', encoding="utf-8")
    assert looked_at(tmp_path, page, 400)["400"]["requests"] == ["http://example.invalid/x.png"]


def test_its_picture_has_the_size_of_the_one_in_the_readme(tmp_path, page):
    """DSBISECT_PICTURE names where it is kept: `make report-picture`, then look at it."""
    taken = tmp_path / "report.png"
    browse(tmp_path, page, f"--screenshot={taken}", f"--window-size={WIDTH},{HEIGHT}")
    if kept := os.environ.get("DSBISECT_PICTURE"):
        shutil.copy(taken, kept)
    assert size_of(taken) == size_of(ROOT / "docs/report.png") == (WIDTH, HEIGHT)


def size_of(picture: Path) -> tuple[int, int]:
    header = picture.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", header[16:])
    return width, height


def test_nothing_of_it_is_hidden_from_any_reader(page):
    assert serious(page.read_text(encoding="utf-8")) == []


def test_what_is_hidden_from_some_would_be_noticed():
    page = "<!doctype html><html><head><title>t</title></head><body><img src=x></body></html>"
    found = serious(page)
    assert len(found) == 8  # two widths, two schemes
    assert all("html-has-lang" in each or "image-alt" in each for each in found)
