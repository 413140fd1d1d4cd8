"""How well the search finds steps in noise, compared with its peers, in histories of known truth.

make bench-search                    all, and docs/search-benchmark.md and .svg (an hour)
make bench-search BENCH=--quick      few histories, nothing written (three minutes)
make bench-search BENCH='--worlds 600 --json plays.json'
make bench-search BENCH=--honest     is what it says true? docs/search-honesty.md (25 minutes)

These print their tables and write no page:

make bench-search BENCH="--only 'two machines' --worlds 40 --tuning"
make bench-search BENCH='--long --json before.json'       the main cells, 400 histories each
make bench-search BENCH='--long --against before.json'    the same, and the paired differences
make bench-search BENCH="--honest --tuning --only 'heavy tails' --worlds 30 --json before.json"
make bench-search BENCH="--honest --tuning --only 'heavy tails' --worlds 30 --against before.json"
make bench-search BENCH=--parts                           what each part of the search is worth
make bench-search BENCH=--nights                          a watch's false alarms, and its delays
make bench-search BENCH='--plans 24'                      is "9 in 10: at most" of a plan true?

What was played is kept in results/runs/search: run the same command again to resume.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from searchbench.cell import LAST_SEED, Cell
from searchbench.comparison import FAMILY_HEAD, differences, family_differences, read_old
from searchbench.comparison import HEAD as COMPARISON_HEAD
from searchbench.families import WORLDS as HONEST_WORLDS
from searchbench.families import family_cells
from searchbench.honesty import PART_WORLDS, honesty_report, part_cells, said_table
from searchbench.large import Large, measure_apart
from searchbench.markdown import rows
from searchbench.nights import NIGHTS, delay_table, named_on, night_cells, night_table
from searchbench.plans import plan_lines, play_plans
from searchbench.plays import Plays, play_all, play_jobs
from searchbench.plot import draw_to
from searchbench.scenarios import LONG_WORLDS, QUICK_WORLDS, WORLDS, cells, long, only
from searchbench.table import report, tables
from searchbench.target import Target
from searchbench.targets import targets

DOCS = Path(__file__).parents[3] / "docs"


def main() -> None:
    parser = _parser()
    asked = parser.parse_args()
    if asked.plans:
        print("\n".join(plan_lines(play_plans(asked.plans, asked.jobs))))
        return
    if asked.honest:
        _honest(asked)
        return
    if asked.nights:
        plays = play_all(night_cells(), asked.worlds or NIGHTS, asked.jobs)
        print(night_table(plays))
        print(delay_table(named_on(plays, lambda jobs: play_jobs(jobs, asked.jobs))))
        return
    if asked.parts:
        cells = only(part_cells(), asked.only) if asked.only else part_cells()
        print(said_table(play_all(cells, asked.worlds or PART_WORLDS, asked.jobs)))
        return
    played = _cells(asked)
    if not played:
        parser.error("--only, --search: no table and no line has this in its title")
    worlds = asked.worlds or _usual_worlds(asked)
    whole = not (asked.only or asked.long or asked.tuning)
    old = read_old(asked.against) if asked.against else {}
    large = measure_apart() if whole else None  # before the pool: it is timed
    plays = play_all(played, worlds, asked.jobs)
    found = targets(plays, large)
    if asked.json:
        asked.json.write_text(json.dumps(_facts(plays, found, large), indent=1) + "\n")
    if large is None:
        print(tables(plays))
    else:
        text = report(plays, found, large, _command(worlds))
        _print_or_write(text, plays, printed=asked.quick)
    if old:
        print(rows(COMPARISON_HEAD, differences(plays, old)))
    for each in found:
        print(f"{each.verdict}: {each.what}: wanted {each.wanted}; measured {each.measured}")


def _honest(asked: argparse.Namespace) -> None:
    """The page is written only if all of it is played as it asks."""
    cells = family_cells(tuning=asked.tuning)
    if asked.only:
        cells = only(cells, asked.only)
    if asked.search:
        cells = _played_by(asked.search, cells)
    worlds = asked.worlds or HONEST_WORLDS
    plays = play_all(cells, worlds, asked.jobs)
    if asked.json:
        asked.json.write_text(json.dumps(_facts(plays, [], None), indent=1) + "\n")
    option = "--honest" if worlds == HONEST_WORLDS else f"'--honest --worlds {worlds}'"
    text = honesty_report(plays, f"make bench-search BENCH={option}", worlds)
    whole = not (asked.only or asked.search or asked.tuning)
    if whole and worlds >= HONEST_WORLDS:
        (DOCS / "search-honesty.md").write_text(text)
    else:
        print(text)
    if asked.against:
        print(rows(FAMILY_HEAD, family_differences(plays, read_old(asked.against))))


def _print_or_write(text: str, plays: Plays, *, printed: bool) -> None:
    if printed:
        print(text)
        return
    (DOCS / "search-benchmark.md").write_text(text)
    draw_to(DOCS / "search-benchmark.svg", plays)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dsbisect-search-benchmark",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="few histories; the report is printed")
    parser.add_argument("--long", action="store_true", help="the main cells, by dsbisect alone")
    parser.add_argument(
        "--only", metavar="TEXT", action="append", help="tables and lines with this in their title"
    )
    parser.add_argument("--honest", action="store_true", help="instead: is what it says true?")
    parser.add_argument("--parts", action="store_true", help="instead: what is each part worth?")
    parser.add_argument("--nights", action="store_true", help="instead: nights of a watch")
    parser.add_argument("--search", metavar="NAME", help="of these, what this search plays")
    parser.add_argument("--tuning", action="store_true", help="histories that no page shows")
    parser.add_argument("--worlds", type=_worlds, help=f"histories of a whole cell [{WORLDS}]")
    parser.add_argument(
        "--plans", type=_worlds, metavar="N", help="instead: are plans true, on N machines?"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every play and target")
    parser.add_argument("--against", type=Path, metavar="FILE", help="compare with such plays")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes [cores]")
    return parser


def _cells(asked: argparse.Namespace) -> tuple[Cell, ...]:
    found = long() if asked.long else cells()
    if asked.only:
        # a part of the tables: each cell gets as many worlds as were asked for
        found = tuple(replace(cell, share=1.0) for cell in only(found, asked.only))
    if asked.search:
        found = _played_by(asked.search, found)
    if asked.tuning:
        found = tuple(replace(cell, first_seed=LAST_SEED) for cell in found)
    return found


def _played_by(search: str, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    return tuple(replace(cell, methods=(search,)) for cell in cells if search in cell.methods)


def _usual_worlds(asked: argparse.Namespace) -> int:
    if asked.quick:
        return QUICK_WORLDS
    return LONG_WORLDS if asked.long else WORLDS


def _worlds(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) < LAST_SEED:
        raise argparse.ArgumentTypeError(f"want 1 to {LAST_SEED - 1}, not {text!r}")
    return int(text)


def _command(worlds: int) -> str:
    """Only what changes the figures."""
    return "make bench-search" + ("" if worlds == WORLDS else f" BENCH='--worlds {worlds}'")


def _facts(plays: Plays, found: list[Target], large: Large | None) -> dict[str, object]:
    return {
        "targets": [asdict(each) for each in found],
        "large": asdict(large) if large else None,
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
