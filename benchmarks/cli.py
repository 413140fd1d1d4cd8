"""How long the command line takes to answer, next to a Python that does nothing.

CPU time of the process, user and system, since a busy machine makes every clock run long.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

COMMANDS = (
    "--help",
    "--version",
    "doctor --help",
    "measure --help",
    "plan --help",
    "build make --help",
    "bisect commits --help",
    "judge --help",
    "show --help",
    "clean --help",
    "matrix --help",
    "bisect rows --help",
    "results --help",
    "check",
    "list rows",
)
ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    print(f"median of {runs} runs         CPU s   wall s")
    bare = [sys.executable, "-c", "pass"]
    dsbisect = str(Path(sys.executable).with_name("dsbisect"))
    told(runs, "python -c pass", bare)
    for words in COMMANDS:
        told(runs, f"dsbisect {words}", [dsbisect, *words.split()])


def told(runs: int, name: str, argv: list[str]) -> None:
    measured_runs = [once(argv) for _ in range(runs)]
    cpu, wall = (statistics.median(values) for values in zip(*measured_runs, strict=True))
    print(f"{name:<28} {cpu:5.2f}    {wall:5.2f}")


def once(argv: list[str]) -> tuple[float, float]:
    """Seconds of CPU and of the clock."""
    begin, before = time.monotonic(), os.times()
    subprocess.run(argv, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    spent = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    return spent, time.monotonic() - begin


if __name__ == "__main__":
    main()
