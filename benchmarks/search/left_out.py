"""Parts of the search that can be left out, to see what each is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from dssearch.bayes import posterior, ramps

# Where the posterior asks for the part, and what it gets instead.
PARTS: dict[str, tuple[str, Callable[..., Any]]] = {
    "two modes": ("slow_mode", lambda *_: None),
    "ramps": ("ramp_masses", lambda positions: 0.0 * ramps.masses(positions)),
    "machine speed": ("without_speed", lambda seen: seen),
    "disturbance": ("widened", lambda seen: seen),
}


@contextmanager
def left_out(part: str) -> Iterator[None]:
    """The search does without it inside the block."""
    name, instead = PARTS[part]
    with patch.object(posterior, name, instead):
        yield
