"""How an optional part of the lab is installed, where this program runs."""

from __future__ import annotations

import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]


def install_command(extra: str) -> str:
    """Return what can be typed as it stands, in any folder."""
    if not (CHECKOUT / "uv.lock").exists():
        return f"{sys.executable} -m pip install 'dsbisect[{extra}]'"
    own = CHECKOUT / ".tools/bin/uv"
    uv = str(own) if own.exists() else "uv"
    return f"{uv} sync --project {CHECKOUT} --frozen --inexact --no-dev --extra {extra}"
