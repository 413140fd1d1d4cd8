"""How well the search finds steps in noise, compared with its peers, in histories of known truth.

make bench-search                    all, and docs/search-benchmark.md and .svg (ten minutes)
make bench-search BENCH=--quick      few histories, nothing written (two minutes)
make bench-search BENCH='--worlds 600 --json plays.json'
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from pathlib import Path

from benchmarks.search.large import Large, measure_apart
from benchmarks.search.plot import draw_to
from benchmarks.search.running import Plays, play_all
from benchmarks.search.scenarios import LAST_SEED, QUICK_WORLDS, WORLDS, cells
from benchmarks.search.table import report
from benchmarks.search.targets import Target, targets

DOCS = Path(__file__).parents[2] / "docs"


def main() -> None:
    asked = _parser().parse_args()
    worlds = asked.worlds or (QUICK_WORLDS if asked.quick else WORLDS)
    large = measure_apart()  # before the pool: it is timed
    plays = play_all(cells(), worlds, asked.jobs)
    found = targets(plays, large)
    text = report(plays, found, large, _command(worlds))
    if asked.json:
        asked.json.write_text(json.dumps(_facts(plays, found, large), indent=1) + "\n")
    if asked.quick:
        print(text)
    else:
        (DOCS / "search-benchmark.md").write_text(text)
        draw_to(DOCS / "search-benchmark.svg", plays)
    for each in found:
        print(f"{each.verdict}: {each.what}: wanted {each.wanted}; measured {each.measured}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few histories; the report is printed")
    parser.add_argument("--worlds", type=_worlds, help=f"histories of a whole cell [{WORLDS}]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every play and target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes [cores]")
    return parser


def _worlds(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) < LAST_SEED:
        raise argparse.ArgumentTypeError(f"want 1 to {LAST_SEED - 1}, not {text!r}")
    return int(text)


def _command(worlds: int) -> str:
    """Only what changes the figures."""
    return "make bench-search" + ("" if worlds == WORLDS else f" BENCH='--worlds {worlds}'")


def _facts(plays: Plays, found: list[Target], large: Large) -> dict[str, object]:
    return {
        "targets": [asdict(each) for each in found],
        "large": asdict(large),
        "cells": [
            {
                "group": cell.group,
                "kind": asdict(cell.kind),
                "search": method,
                "plays": [asdict(each) for each in made],
            }
            for (cell, method), made in plays.items()
        ],
    }


if __name__ == "__main__":
    main()
