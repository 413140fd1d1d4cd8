"""The list of places where bytes of somebody else enter names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`(test_\w+\.py)(?:::(\w+))?`")
NAMES = sorted(set(NAMED.findall(PAGE.read_text(encoding="utf-8"))) - {("test_x.py", "test_y")})


@pytest.mark.parametrize(("file", "test"), NAMES, ids=lambda name: name)
def test_a_test_that_the_page_names_exists(file: str, test: str) -> None:
    (place,) = ROOT.glob(f"tests/*/**/{file}")  # no two have the same name
    defined = rf"^\s*def {test}\(" if test else r"^\s*def test_"
    assert re.search(defined, place.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_entry_says_its_test_or_that_none_is_there() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    entries = [row for row in rows if not row.startswith(("| entry", "| where", "|---"))]
    assert entries
    assert [row for row in entries if not (NAMED.search(row) or row.endswith("| open |"))] == []
