"""A real browser that looks at pages in frames of several widths, and tells what it saw."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from accessibility import BROWSER

from dsharness.process.command import run
from dsharness.process.deadline import Deadline

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-default-apps "
    "--allow-file-access-from-files --virtual-time-budget=3000 --hide-scrollbars"
)

# One start of the browser looks at each width and scheme.
PROBE = """<pre id=out></pre><script>
  async function look(width) {
    const frame = document.createElement('iframe');
    frame.style = `width:${width}px;height:900px;border:0`;
    frame.src = PAGE;
    document.body.append(frame);
    await new Promise(resolve => frame.onload = resolve);
    const seen = frame.contentDocument, rooted = seen.documentElement;
    const view = seen.defaultView;
    return {
      width: rooted.scrollWidth,
      paper: view.getComputedStyle(seen.body).backgroundColor,
      requests: view.performance.getEntriesByType('resource').map(one => one.name),
      touching: [...seen.querySelectorAll('svg[viewBox]')].flatMap(drawing => {
        const straight = [...drawing.querySelectorAll('text:not([transform])')];
        const boxes = straight.map(one => [one.textContent, one.getBoundingClientRect()]);
        const area = drawing.getBoundingClientRect();
        const over = (a, b) => a.left < b.right && b.left < a.right
          && a.top + 1 < b.bottom && b.top + 1 < a.bottom;
        const outside = ([, box]) => box.left < area.left - 1 || box.right > area.right + 1;
        return [
          ...boxes.flatMap(([text, a], i) => boxes.slice(i + 1)
            .filter(([, b]) => over(a, b)).map(([other]) => `${text} | ${other}`)),
          ...boxes.filter(outside).map(([text]) => text),
        ];
      }),
      names: [...seen.querySelectorAll('.candidates tbody th')].map(one => {
        const range = seen.createRange();
        range.selectNodeContents(one.firstChild);
        return new Set([...range.getClientRects()].map(line => line.top)).size;
      }),
    };
  }
  (async () => {
    const found = {};
    for (const width of WIDTHS) found[width] = await look(width);
    out.textContent = JSON.stringify(found);
  })();
</script>"""


def browse(folder: Path, page: Path, *argv: str) -> str:
    """What the browser prints; it reaches no network itself."""
    done = run(
        [
            str(BROWSER),
            *OPTIONS.split(),
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={folder / 'profile'}",
            *argv,
            page.as_uri(),
        ],
        deadline=Deadline.after(90),
    )
    assert done.ok, done
    return done.stdout


def looked_at(folder: Path, page: Path, *widths: int, dark: bool = False) -> dict[str, Any]:
    """What the page looks like in frames of these widths, and what it asked for."""
    frame = folder / "frame.html"
    text = PROBE.replace("PAGE", json.dumps(page.as_uri())).replace("WIDTHS", json.dumps(widths))
    frame.write_text(f"<body>{text}", encoding="utf-8")
    scheme = ("--blink-settings=preferredColorScheme=0",) if dark else ()
    shown = browse(folder, frame, "--dump-dom", *scheme)
    found = re.search(r'<pre id="out">(\{.*?\})</pre>', shown)
    assert found, shown
    seen: dict[str, Any] = json.loads(html.unescape(found[1]))
    return seen
