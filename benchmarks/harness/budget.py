"""What the lab itself takes: until the first valid sample, and of the CPUs while it samples.

Each is asked of the whole command, as a user waits for it: image and golden state are ready, the
server and its load are not.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LONG = 10  # samples of the longer command


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Medians over some commands."""

    workload: str
    first_s: float  # of a command with one sample, from its start to its end
    own_pct: float  # of all CPUs, by the lab and the programs it calls, for each further sample


@dataclass(frozen=True, kw_only=True)
class _Spent:
    seconds: float
    cpu_s: float


def budgets(row: str, workloads: Sequence[str], runs: int) -> Iterator[Budget]:
    """Ask for each workload so many times; a first command makes what is missing."""
    for workload in workloads:
        _measured(row, workload, 1)
        short = [_measured(row, workload, 1) for _ in range(runs)]
        long = [_measured(row, workload, LONG) for _ in range(runs)]
        yield Budget(
            workload=workload,
            first_s=statistics.median(spent.seconds for spent in short),
            own_pct=100
            * statistics.median(
                (more.cpu_s - less.cpu_s) / (more.seconds - less.seconds)
                for less, more in zip(short, long, strict=True)
            )
            / (os.cpu_count() or 1),
        )


def _measured(row: str, workload: str, samples: int) -> _Spent:
    start_s, before = time.monotonic(), _cpu_s()
    said_by("measure", row, "--workload", workload, "--runs", str(samples))
    return _Spent(seconds=time.monotonic() - start_s, cpu_s=_cpu_s() - before)


def said_by(*words: str) -> str:
    """What a whole command prints, with a store of its own; the benchmark ends where it fails."""
    program = Path(sys.executable).parent / "dsbisect"
    with tempfile.TemporaryDirectory() as folder:
        command = [str(program), *words, "--store", f"{folder}/store.db"]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        sys.exit(result.stderr)
    return result.stdout


def _cpu_s() -> float:
    """Of commands that have ended; what runs in a container is no child of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
