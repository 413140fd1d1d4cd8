"""Files with texts as they were when they were last reviewed."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, text: str) -> None:
    """Compare with tests/golden/NAME; DSBISECT_REGEN=1 writes it."""
    path = ROOT / name
    if os.environ.get("DSBISECT_REGEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: DSBISECT_REGEN=1 pytest writes it"
    assert text == path.read_text(encoding="utf-8"), f"{path} differs: DSBISECT_REGEN=1, then look"
