"""Deadlines as points in time, and waiting for behaviour.

Whether the lab was asked to stop, for the time after the exception.

A signal's handler raises KeyboardInterrupt in whatever runs just then. Code that ignores every
error, as some in C does, would lose it: so the request is kept, and asked for between two runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from dsharness.errors import DeadlineError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Deadline:
    """A point on the monotonic clock; everything bounded takes one."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        return cls(at=time.monotonic() + seconds)

    @classmethod
    def of_work(cls, seconds: float) -> Deadline:
        """After so many seconds where work goes as usual, and later where it goes slower."""
        return cls.after(seconds * patience())

    @property
    def left_s(self) -> float:
        return max(0.0, self.at - time.monotonic())

    @property
    def passed(self) -> bool:
        return self.left_s == 0.0


PIECES, PIECE = 5, 300_000
USUAL_S = 0.04  # that all pieces take, on an ordinary machine that other programs share
MOST_PATIENCE = 10.0


@cache
def patience() -> float:
    """Return how many times longer than usual work takes here, such as where it is emulated."""
    begun_s = time.perf_counter()
    for _ in range(PIECES):
        sum(range(PIECE))
    return min(MOST_PATIENCE, max(1.0, (time.perf_counter() - begun_s) / USUAL_S))


def wait_until(
    probe: Callable[[], T | None], deadline: Deadline, *, what: str, pause_s: float = 0.1
) -> T:
    """Return the first answer of ``probe`` that is not None; DeadlineError once time is up."""
    while True:
        answer = probe()
        if answer is not None:
            return answer
        if deadline.passed:
            raise DeadlineError(
                f"timed out waiting for {what}",
                hint="see the log; try again when the machine is less busy",
            )
        time.sleep(min(pause_s, deadline.left_s))


_asked = threading.Event()


def keep_request() -> None:
    _asked.set()


def forget_request() -> None:
    _asked.clear()


def check_request() -> None:
    """Raise KeyboardInterrupt if the lab was asked to stop, and still works."""
    if _asked.is_set():
        raise KeyboardInterrupt
