"""The pages as a site: every link and heading leads somewhere, and each page is in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_site_is_made_and_has_every_page() -> None:
    done = subprocess.run(
        ["make", "site"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    site = (ROOT / done.stdout.splitlines()[-1]).parent
    start = (site / "index.html").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert (site / "docs" / page.name).with_suffix(".html").exists()
        assert f'href="./docs/{page.stem}.html"' in start, f"{page.name} is not in mkdocs.yml"
    assert "https://fonts." not in start
    assert "libtool" in (site / "search.js").read_text(encoding="utf-8")
