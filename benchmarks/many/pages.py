"""How long the commands take that people look at machines, answers and watches with.

As installed: with its modules compiled, which a first run that is not counted sees to. The CPU time
is the program's own: on a machine that does other things, waiting for a CPU counts as well.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.many.figure import Figure
from benchmarks.many.filled_store import WATCH

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S, RUNS = 1.0, 3


def pages(url: str, campaign: str, folder: Path) -> list[Figure]:
    """Each as its user starts it: with the start of the program and of its connection."""
    commands: dict[str, tuple[str, ...]] = {
        "machines": ("machines", "--on", url),
        "show CAMPAIGN": ("show", campaign, "--store", url, "--output", str(folder / "page")),
        "watch show": ("watch", "show", WATCH, "--store", url),
        "watch show --output": (
            "watch",
            "show",
            WATCH,
            "--store",
            url,
            "--output",
            str(folder / "watch"),
        ),
        "show history CANDIDATE": ("show", "history", "debian-12", "--store", url),
        "--version (for comparison)": ("--version",),
    }
    figures = [_page(name, words) for name, words in commands.items()]
    seconds = _once(("list", "answers", "--store", url))
    return [*figures, Figure.of_times("`dsbisect list answers` (all campaigns)", [seconds])]


def _page(name: str, words: tuple[str, ...]) -> Figure:
    _once(words)
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = [_once(words) for _ in range(RUNS)]
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = (end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime) / RUNS
    return Figure.of_times(f"`dsbisect {name}`", took, LIMIT_S).with_cpu([cpu_s])


def _once(words: tuple[str, ...]) -> float:
    unset = {"PYTHONDONTWRITEBYTECODE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", "from dsbisect.program import main; main()", *words],
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    return time.monotonic() - begin
