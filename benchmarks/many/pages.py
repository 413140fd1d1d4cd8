"""How long the commands take that people look at machines, answers and watches with."""

from __future__ import annotations

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
    commands = {
        "machines": ("machines", "--on", url),
        "report CAMPAIGN": ("report", campaign, "--store", url, "--output", str(folder / "page")),
        "watch show": ("watch", "show", WATCH, "--store", url, "--output", str(folder / "watch")),
        "history CANDIDATE": ("history", "debian-12", "--store", url),
        "--version (for comparison)": ("--version",),
    }
    found = [
        Figure.of_times(f"`dsbisect {name}`", [_once(words) for _ in range(RUNS)], LIMIT_S)
        for name, words in commands.items()
    ]
    listed = _once(("results", "list", "--store", url))
    return [*found, Figure.of_times("`dsbisect results list` (all campaigns)", [listed])]


def _once(words: tuple[str, ...]) -> float:
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", "from dsbisect.program import main; main()", *words],
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return time.monotonic() - begin
