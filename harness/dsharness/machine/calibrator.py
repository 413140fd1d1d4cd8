"""A fixed piece of work, timed while a sample runs, that tells how fast the machine is now.

On shared machines the same bind costs 10-30 % more CPU time from one minute to the next. The
calibrator slows down with it, so that cost divided by calibrator keeps to a few percent (see
docs/verdicts.md for figures and the command that produced them).
"""

from __future__ import annotations

import hashlib
import os
import statistics
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

ROUNDS = 4000
PAUSE_S = 0.08


class Calibrator:
    """Context manager; ``cpu_us`` is the median CPU time of one piece of work, in microseconds.

    Since it wakes at an even pace, it also sees when the lab itself was not allowed to run, and
    when ``paused`` says that what is measured was not.
    """

    def __init__(self, cpus: tuple[int, ...], paused: Callable[[], bool] = lambda: False) -> None:
        self._cpus = cpus or tuple(sorted(os.sched_getaffinity(0)))
        self._paused = paused
        self.gap_s = 0.0  # the longest time between two pieces of work
        self.paused_s = 0.0
        self._times_us: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="calibrator", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def cpu_us(self) -> float | None:
        return statistics.median(self._times_us) if self._times_us else None

    def _work(self) -> None:
        # Affinity and the CPU clock are per thread on Linux, and hashing releases the GIL.
        latest = time.monotonic()
        while not self._stop.is_set():
            now, since = time.monotonic(), latest
            latest = now
            self.gap_s = max(self.gap_s, now - since)
            self.paused_s += (now - since) if self._paused() else 0.0
            for cpu in self._cpus:
                os.sched_setaffinity(0, {cpu})
                begin = time.thread_time_ns()
                hashlib.pbkdf2_hmac("sha256", b"calibrator", b"salt", ROUNDS)
                self._times_us.append((time.thread_time_ns() - begin) / 1000)
            self._stop.wait(PAUSE_S)
