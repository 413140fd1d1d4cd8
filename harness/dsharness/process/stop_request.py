"""Whether the lab was asked to stop, for the time after the exception.

A signal's handler raises KeyboardInterrupt in whatever runs just then. Code that ignores every
error, as some in C does, would lose it: so the request is kept, and asked for between two runs.
"""

from __future__ import annotations

import threading

_asked = threading.Event()


def keep_request() -> None:
    _asked.set()


def forget_request() -> None:
    _asked.clear()


def check_request() -> None:
    """KeyboardInterrupt if the lab was asked to stop, and still works."""
    if _asked.is_set():
        raise KeyboardInterrupt
