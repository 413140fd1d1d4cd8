"""How well the search finds steps in noise, compared with its peers, in histories of known truth.

make bench-search                    all, and search-benchmark.md and .svg (an hour)
make bench-search BENCH=--quick      few histories, nothing written (three minutes)
make bench-search BENCH='--worlds 600 --json plays.json'
make bench-search BENCH=--honest     is what it says true? search-honesty.md (25 minutes)

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

PAGES = Path(__file__).parents[1]


def main() -> None:
    parser = _parser()
    options = parser.parse_args()
    if options.plans:
        print("\n".join(plan_lines(play_plans(options.plans, options.jobs))))
        return
    if options.honest:
        _honest(options)
        return
    if options.nights:
        plays = play_all(night_cells(), options.worlds or NIGHTS, options.jobs)
        print(night_table(plays))
        print(delay_table(named_on(plays, lambda jobs: play_jobs(jobs, options.jobs))))
        return
    if options.parts:
        cells = only(part_cells(), options.only) if options.only else part_cells()
        print(said_table(play_all(cells, options.worlds or PART_WORLDS, options.jobs)))
        return
    played = _cells(options)
    if not played:
        parser.error("--only, --search: no table and no line has this in its title")
    worlds = options.worlds or _usual_worlds(options)
    whole = not (options.only or options.long or options.tuning)
    old = read_old(options.against) if options.against else {}
    large = measure_apart() if whole else None  # before the pool: it is timed
    plays = play_all(played, worlds, options.jobs)
    results = targets(plays, large)
    if options.json:
        options.json.write_text(json.dumps(_facts(plays, results, large), indent=1) + "\n")
    if large is None:
        print(tables(plays))
    else:
        text = report(plays, results, _command(worlds))
        _print_or_write(text, plays, printed=options.quick)
    if old:
        print(rows(COMPARISON_HEAD, differences(plays, old)))
    for target in results:
        print(
            f"{target.verdict}: {target.what}: wanted {target.wanted}; measured {target.measured}"
        )


def _honest(options: argparse.Namespace) -> None:
    """The page is written only if all of it is played as it asks."""
    cells = family_cells(tuning=options.tuning)
    if options.only:
        cells = only(cells, options.only)
    if options.search:
        cells = _played_by(options.search, cells)
    worlds = options.worlds or HONEST_WORLDS
    plays = play_all(cells, worlds, options.jobs)
    if options.json:
        options.json.write_text(json.dumps(_facts(plays, [], None), indent=1) + "\n")
    option = "--honest" if worlds == HONEST_WORLDS else f"'--honest --worlds {worlds}'"
    text = honesty_report(plays, f"make bench-search BENCH={option}", worlds)
    whole = not (options.only or options.search or options.tuning)
    if whole and worlds >= HONEST_WORLDS:
        (PAGES / "search-honesty.md").write_text(text)
    else:
        print(text)
    if options.against:
        print(rows(FAMILY_HEAD, family_differences(plays, read_old(options.against))))


def _print_or_write(text: str, plays: Plays, *, printed: bool) -> None:
    if printed:
        print(text)
        return
    (PAGES / "search-benchmark.md").write_text(text)
    draw_to(PAGES / "search-benchmark.svg", plays)


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


def _cells(options: argparse.Namespace) -> tuple[Cell, ...]:
    played = long() if options.long else cells()
    if options.only:
        # a part of the tables: each cell gets as many worlds as were asked for
        played = tuple(replace(cell, share=1.0) for cell in only(played, options.only))
    if options.search:
        played = _played_by(options.search, played)
    if options.tuning:
        played = tuple(replace(cell, first_seed=LAST_SEED) for cell in played)
    return played


def _played_by(search: str, cells: Sequence[Cell]) -> tuple[Cell, ...]:
    return tuple(replace(cell, methods=(search,)) for cell in cells if search in cell.methods)


def _usual_worlds(options: argparse.Namespace) -> int:
    if options.quick:
        return QUICK_WORLDS
    return LONG_WORLDS if options.long else WORLDS


def _worlds(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) < LAST_SEED:
        raise argparse.ArgumentTypeError(f"want 1 to {LAST_SEED - 1}, not {text!r}")
    return int(text)


def _command(worlds: int) -> str:
    """Only what changes the figures."""
    return "make bench-search" + ("" if worlds == WORLDS else f" BENCH='--worlds {worlds}'")


def _facts(plays: Plays, results: list[Target], large: Large | None) -> dict[str, object]:
    return {
        "targets": [asdict(target) for target in results],
        "large": asdict(large) if large else None,
        "cells": [
            {
                "group": cell.group,
                "kind": asdict(cell.kind),
                "search": method,
                "plays": [asdict(play) for play in cell_plays],
            }
            for (cell, method), cell_plays in plays.items()
        ],
    }


if __name__ == "__main__":
    main()
