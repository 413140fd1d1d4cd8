"""Texts are plain modern English: readers whose first language it is not should not stumble."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "uv.lock").exists())
QUAINT = re.compile(
    r"\b(mend(s|ed|ing)?|lest|anew|upon|besides?|in vain|nought|(some|no)body's|to be had|"
    r"for ever|(his|her) own|where(of|upon)|there(of|upon)|hitherto|aright|waits? in vain|"
    r"speaks? (for|against)|(is|are|was|were) held against|let go of|for eyes)\b",
    re.IGNORECASE,
)
TEXTS = (".py", ".md", ".j2", ".jinja", ".css", ".yaml", ".toml", "Makefile", ".base")


def test_no_text_uses_an_old_fashioned_word() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    found = [
        f"{name}:{number}: {hit.group()}"
        for name in listed
        if name.endswith(TEXTS)
        and not name.endswith("test_plain_words.py")
        and (ROOT / name).is_file()
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1)
        for hit in [QUAINT.search(line)]
        if hit
    ]
    assert found == []
