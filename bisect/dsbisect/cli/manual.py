"""Pages of the manual, as files that are there wherever one stands."""

from __future__ import annotations

import re
from pathlib import Path

import dsharness
from dsharness.extras import CHECKOUT

PAGE = re.compile(r"(?<![\w/])docs/([a-z-]+\.md)\b")
PACKAGED = Path(dsharness.__file__).parent / "data" / "docs"
DOCS = CHECKOUT / "docs"


def with_manual(text: str) -> str:
    """Name the pages of a message by where they are, unless they lie where one stands."""
    folder = PACKAGED if PACKAGED.is_dir() else DOCS

    def place(page: re.Match[str]) -> str:
        file = folder / page[1]
        return page[0] if Path(page[0]).exists() or not file.exists() else str(file)

    return PAGE.sub(place, text)
