"""docs/status.md says why tests are skipped; DSBISECT_REGEN=1 writes what the tests say."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "status.md"
BLOCK = re.compile(r"(?<=<!-- skips -->\n).*(?=<!-- end -->)", re.DOTALL)


def test_the_page_says_why_tests_are_skipped() -> None:
    texts = (file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py"))
    reasons = {reason for text in texts if "skip" in text for reason in reasons_of(text)}
    table = "".join(f"- {reason}\n" for reason in sorted(reasons) if reason.strip("… "))
    if os.environ.get("DSBISECT_REGEN"):
        PAGE.write_text(BLOCK.sub(lambda _: table, PAGE.read_text("utf-8")), "utf-8")
    assert BLOCK.findall(PAGE.read_text("utf-8")) == [table]


def reasons_of(text: str) -> Iterator[str]:
    """Return what the calls of `skip`, `skipif` and `importorskip` in a module say."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in {"skip", "skipif", "importorskip"}:
            reason = [word.value for word in node.keywords if word.arg == "reason"]
            yield from map(words_of, reason or node.args[:1])


def words_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(words_of, parts))
        case _:
            return "…"
