"""The page in a real browser: it loads, asks for nothing, and fits a telephone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from reported import DEBIAN, reported

from dsharness.process.command import run
from dsharness.process.deadline import Deadline
from dsresults.report import write_report

BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium here")


PROBE = """<iframe id="f" src="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<pre id=out></pre><script>f.onload = () => {{
  const seen = f.contentDocument.documentElement;
  out.textContent = JSON.stringify({{
    width: seen.scrollWidth,
    paper: getComputedStyle(seen.querySelector('body')).backgroundColor,
    requests: f.contentWindow.performance.getEntriesByType('resource').map(one => one.name),
  }})
}}</script>"""


def browse(folder: Path, page: Path, *argv: str) -> str:
    """The document as the browser sees it in the end; the browser itself reaches no network."""
    options = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-default-apps --dump-dom "
        "--allow-file-access-from-files --virtual-time-budget=3000"
    )
    done = run(
        [
            str(BROWSER),
            *options.split(),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            *argv,
            page.as_uri(),
        ],
        deadline=Deadline.after(90),
    )
    assert done.ok, done
    return done.stdout


def probe(folder: Path, page: Path, width: int, *argv: str) -> dict[str, Any]:
    """What the page looks like, and what it asked for, in a frame of that width."""
    frame = folder / "frame.html"
    frame.write_text(PROBE.format(page=page.as_uri(), width=width), encoding="utf-8")
    found = re.search(r'<pre id="out">(\{.*?\})</pre>', browse(folder, frame, *argv))
    assert found
    seen: dict[str, Any] = json.loads(found[1])
    return seen


def test_shows_the_boundary(tmp_path):
    shown = browse(tmp_path, write_report(tmp_path / "out", reported(DEBIAN)))
    assert "Slow from debian-13 on" in shown
    assert "Slow from debian-12 on" in shown
    assert shown.count('class="boundary"') == 2


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_asks_for_nothing(tmp_path, width, scheme):
    page = write_report(tmp_path / "out", reported(DEBIAN))
    preference = ("--blink-settings=preferredColorScheme=0",) if scheme == "dark" else ()
    seen = probe(tmp_path, page, width, *preference)
    assert seen["width"] <= width
    assert seen["paper"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
    assert seen["requests"] == []


def test_a_page_that_asks_for_something_would_be_noticed(tmp_path):
    page = tmp_path / "asks.html"
    page.write_text('<body><img src="http://example.invalid/x.png">', encoding="utf-8")
    assert probe(tmp_path, page, 400)["requests"] == ["http://example.invalid/x.png"]
