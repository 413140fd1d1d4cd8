"""Time and memory at 100,000 candidates, measured in a process of its own.

python -m searchbench.large     prints JSON
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from searchbench.driver import drive, line_of
from searchbench.kinds import Kind
from searchbench.machine import Machine
from searchbench.worlds import draw

N = 100_000
D = 2.0
SEEDS = range(3)
TRACED_SEED = 3


@dataclass(frozen=True, kw_only=True)
class Large:
    median_ms: float
    slowest_ms: float  # but the first step of a search, which lays the line out
    first_ms: float
    resident_mb: float  # the whole process at its peak, Python and numpy included
    empty_mb: float  # the same before the first search
    traced_mb: float  # what one search allocated at its peak, its line included


def measure_apart() -> Large:
    """In a fresh interpreter, so that nothing but the search is counted."""
    argv = [sys.executable, "-m", "searchbench.large"]
    result = subprocess.run(argv, check=True, capture_output=True, text=True)
    return Large(**json.loads(result.stdout))


def measure() -> Large:
    # Here, since the time that importing takes is no step's.
    from dssearch.bayes.bayes_search import Bayes  # noqa: PLC0415
    from searchbench.methods import COSTS  # noqa: PLC0415

    empty_mb = _peak_mb()
    line_of(N)
    first: list[float] = []
    later: list[float] = []
    for seed in SEEDS:
        step_s: list[float] = []
        drive(Bayes(costs=COSTS), Machine(draw(Kind(n=N, d=D), seed)), step_s)
        first.append(step_s[0])
        later.extend(step_s[1:])
    resident_mb = _peak_mb()
    line_of.cache_clear()
    tracemalloc.start()
    drive(Bayes(costs=COSTS), Machine(draw(Kind(n=N, d=D), TRACED_SEED)), [])
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Large(
        median_ms=1000 * median(later),
        slowest_ms=1000 * max(later),
        first_ms=1000 * max(first),
        resident_mb=resident_mb,
        empty_mb=empty_mb,
        traced_mb=traced / 2**20,
    )


def _peak_mb() -> float:
    """The high water mark of this program alone; getrusage would count the one that started it."""
    match = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    if match is None:
        raise OSError("/proc/self/status has no VmHWM; this kernel does not tell it")
    return int(match[1]) / 1024


if __name__ == "__main__":
    print(json.dumps(asdict(measure())))
