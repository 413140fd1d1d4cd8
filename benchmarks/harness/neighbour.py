"""A noisy neighbour: bursts of CPU on random cores. It ends with its parent, or after its time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

BURST_S = 0.06  # on average
LONGEST_S = 3600.0


@contextmanager
def neighbour(share: float) -> Iterator[None]:
    """Take that share of each CPU while the block runs."""
    argv = [sys.executable, "-m", "benchmarks.harness.neighbour", str(share)]
    workers = [
        subprocess.Popen(argv, stdin=subprocess.PIPE) for _ in os.sched_getaffinity(0) if share
    ]
    try:
        yield
    finally:
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.wait()


def burn(share: float) -> None:
    """Bursts and pauses of random length, each burst on a random CPU."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cpus = sorted(os.sched_getaffinity(0))
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        os.sched_setaffinity(0, {random.choice(cpus)})
        length_s = random.expovariate(1 / BURST_S)
        # by CPU time: what it does not get in a burst, it takes in a longer one
        until = time.process_time() + length_s
        while time.process_time() < until:
            pass
        time.sleep(length_s * (1 - share) / share)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    burn(float(sys.argv[1]))
