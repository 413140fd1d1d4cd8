"""A watch's pages in a real browser: they fit, ask for nothing, and a click leads to the runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from accessibility import BROWSER
from browser import browse, looked_at
from seen_page import seen_page
from watched_tips import hash_of, watch_with_an_alarm

from dsresults.watch.watch_page import PAGE, write_watch

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here")

CLICK = """<pre id=out></pre><script>
  const frame = document.createElement('iframe');
  frame.style = 'width:1280px;height:900px;border:0';
  frame.src = PAGE;
  document.body.append(frame);
  frame.onload = () => {
    const point = frame.contentDocument.querySelector('svg a:has(.slower)');
    frame.onload = () => {
      const seen = frame.contentDocument, article = seen.querySelector('section:target');
      out.textContent = JSON.stringify({
        address: frame.contentWindow.location.href,
        heading: article.querySelector('h2').innerText,
        below: Math.round(article.getBoundingClientRect().top),
        rows: article.querySelectorAll('tbody tr').length,
      });
    };
    point.dispatchEvent(new MouseEvent('click', {bubbles: true}));
  };
</script>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("watched")
    write_watch(made, watch_with_an_alarm())
    return made


@pytest.mark.parametrize(
    ("dark", "paper"), [(False, "rgb(255, 255, 255)"), (True, "rgb(20, 24, 29)")]
)
def test_each_page_fits_and_asks_for_nothing(tmp_path, folder, dark, paper):
    pages = sorted(folder.glob("*.html"))
    assert len(pages) == 3
    for page in pages:
        for width, seen in looked_at(tmp_path, page, 400, 1280, dark=dark).items():
            assert seen["width"] <= int(width), page.name
            assert (seen["paper"], seen["requests"]) == (paper, [])


def test_a_click_on_a_step_leads_to_its_commit_and_its_runs(tmp_path, folder):
    frame = tmp_path / "click.html"
    text = CLICK.replace("PAGE", json.dumps((folder / PAGE).as_uri()))
    frame.write_text(f"<body>{text}", encoding="utf-8")
    shown = browse(tmp_path, frame, "--dump-dom", "--disable-web-security")
    found = json.loads(seen_page(shown).all("pre")[0].text)
    assert re.search(r"/series-main-[^/]*\.html#t1$", found["address"])
    assert found["heading"].startswith(hash_of(2)[:12])
    assert found["rows"] == 2
    assert 0 <= found["below"] < 900, "it is in sight"
