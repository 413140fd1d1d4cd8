"""What axe-core finds in a page, in a real browser: wide and narrow, light and dark."""

from __future__ import annotations

import html
import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

import pytest

from dsharness.process.command import run
from dsharness.process.deadline import Deadline

BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser")) if p), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium here")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-default-apps "
    "--allow-file-access-from-files --virtual-time-budget=60000 --hide-scrollbars"
)
WIDTHS = (400, 1280)
POLICY = re.compile(r'<meta http-equiv="(?:Content-Security-Policy|refresh)"[^>]*>')
# The page's own policy lets nothing in, so axe is told of a copy without it.
INSIDE = """<script>AXE</script><script>
addEventListener('load', async () => {
  document.querySelectorAll('details').forEach(each => { each.open = true; });
  const found = await axe.run(document, {resultTypes: ['violations']});
  window.told = found.violations.filter(each => ['serious', 'critical'].includes(each.impact))
    .map(each => `${each.id}: ${each.nodes.length} times, ${each.nodes[0].html.slice(0, 200)}`);
});
</script></body>"""
OUTSIDE = """<!doctype html><pre id=out></pre><script>
(async () => {
  const told = [];
  for (const width of WIDTHS) {
    const frame = document.createElement('iframe');
    frame.style = `width:${width}px;height:900px;border:0`;
    frame.src = PAGE;
    document.body.append(frame);
    while (!frame.contentWindow.told) await new Promise(next => setTimeout(next, 50));
    told.push(...frame.contentWindow.told.map(each => `${width} px: ${each}`));
  }
  out.textContent = JSON.stringify(told);
})();
</script>"""


def serious(page: str) -> Sequence[str]:
    """Everything serious or critical, with all that is folded unfolded."""
    axe = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
    body = POLICY.sub("", page)
    assert body.count("</body>") == 1
    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="dsbisect-axe-") as place:
        folder = Path(place)
        copy, frame = folder / "page.html", folder / "frame.html"
        inside = INSIDE.replace("AXE", axe.replace("</script", "<\\/script"))
        copy.write_text(body.replace("</body>", inside), encoding="utf-8")
        asked = OUTSIDE.replace("PAGE", json.dumps(copy.as_uri()))
        frame.write_text(asked.replace("WIDTHS", json.dumps(WIDTHS)), encoding="utf-8")
        for scheme in ("light", "dark"):
            told += [f"{scheme}, {each}" for each in _looked(folder, frame, dark=scheme == "dark")]
    return told


def _looked(folder: Path, frame: Path, *, dark: bool) -> list[str]:
    scheme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    done = run(
        [
            str(BROWSER), *OPTIONS.split(), "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}", *scheme, "--dump-dom", frame.as_uri(),
        ],
        deadline=Deadline.after(120),
    )  # fmt: skip
    assert done.ok, done
    found = re.search(r'<pre id="out">(\[.*?\])</pre>', done.stdout, re.DOTALL)
    assert found, done.stdout[-2000:]
    told: list[str] = json.loads(html.unescape(found[1]))
    return told
