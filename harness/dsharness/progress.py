"""What is told while work goes on."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]  # gets a line at a time
