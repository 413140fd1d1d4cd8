"""Jobs on all cores, with progress on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def on_all_cores(
    call: Callable[[Job], Result], jobs: Sequence[Job], workers: int
) -> Iterator[tuple[Job, Result]]:
    """Each job with its result, in the order in which they end."""
    for name in THREADS:  # one process a core is enough
        os.environ[name] = "1"
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(call, job): job for job in jobs}
        started = time.monotonic()
        for done, future in enumerate(as_completed(waiting), 1):
            yield waiting[future], future.result()
            _tell(done, len(jobs), time.monotonic() - started)


def _tell(done: int, total: int, spent_s: float) -> None:
    left_s = spent_s * (total - done) / done
    end = "\n" if done == total else ""
    text = f"\r{done}/{total} jobs, {spent_s:.0f} s, about {left_s:.0f} s left   "
    print(text, end=end, file=sys.stderr, flush=True)
