"""`make bench-harness`: how figures vary, and answers, quiet and with a neighbour; the budget.

BENCH="--pairs 12 --rows debian-12,debian-13 --workload bind-one --no-answers --budget 0 --noise 0"
BENCH="--pairs 0 --no-answers --budget 3 --noise 0"
BENCH="--pairs 0 --no-answers --budget 0 --noise 20 --workload search-equality"
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.harness.answers import Answers, answers
from benchmarks.harness.budget import budgets
from benchmarks.harness.neighbour import neighbour
from benchmarks.harness.spread import Spread, deciders, spreads, two_benches
from dsharness.containers.engine import Engine
from dsharness.containers.engine_probe import detect
from dsharness.matrix import find_workload, load_matrix
from dsharness.measure.sample import Bench
from dsharness.model import Matrix

NEIGHBOURS = {"none": 0.0, "30 % of each CPU": 0.3}
SMALL = ("bind-one", "bind-random", "search-equality", "search-as-user")
QUOTA = "0.7"  # CPUs of a server: what a hypervisor that steals looks like


def main() -> None:
    """Print all tables."""
    options = _options()
    engine, matrix = detect(), load_matrix(None)
    if options.pairs:
        _spreads(engine, matrix, options)
    if options.answers:
        _answers(engine, matrix)
    if options.budget:
        _budgets(options)
    if options.noise:
        _deciders(options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-harness", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10, help="of runs in each cell; 0: none")
    parser.add_argument("--rows", default="debian-12", help="separated by commas")
    parser.add_argument("--workload", default="bind-random")
    parser.add_argument("--no-answers", dest="answers", action="store_false")
    parser.add_argument("--budget", type=int, default=3, help="commands of each kind; 0: none")
    parser.add_argument("--noise", type=int, default=10, help="runs a side, of every metric")
    return parser.parse_args()


def _spreads(engine: Engine, matrix: Matrix, options: argparse.Namespace) -> None:
    workload = find_workload(matrix, options.workload)
    print(f"Coefficients of variation in %, {options.pairs} pairs of one row with itself")
    head = ("row", "neighbour", "way", "rate", "CPU/op", "cost", "ratio", "used", "s a pair")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for row in options.rows.split(","):
        with two_benches(engine, matrix, row) as pair:
            for name, share in NEIGHBOURS.items():
                with neighbour(share):
                    for spread in spreads(engine, pair, workload, options.pairs):
                        _print(row, name, spread)
            with _quota(engine, pair):
                for spread in spreads(engine, pair, workload, options.pairs):
                    _print(row, f"server held to {QUOTA} CPUs", spread)


def _print(row: str, name: str, spread: Spread) -> None:
    figures = (spread.rate, spread.cpu, spread.cost, spread.ratio)
    print(
        f"| {row} | {name} | {spread.way} | "
        + " | ".join(f"{figure:.1f}" for figure in figures)
        + f" | {spread.used:.0%} | {spread.seconds:.1f} |",
        flush=True,
    )


@contextmanager
def _quota(engine: Engine, pair: tuple[Bench, Bench]) -> Iterator[None]:
    """Hold both servers to a part of a CPU."""
    names = [bench.instance.container.name for bench in pair]
    for name in names:
        engine.must("update", "--cpus", QUOTA, name)
    yield


def _answers(engine: Engine, matrix: Matrix) -> None:
    print("\nThe default rows, images and directories ready")
    head = ("neighbour", "wrong", "unanswered", "samples", "used", "seconds")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    answers(engine, matrix)  # makes what is missing
    by_neighbour: dict[str, Answers] = {}
    for name, share in NEIGHBOURS.items():
        with neighbour(share):
            result = by_neighbour[name] = answers(engine, matrix)
        print(
            f"| {name} | {result.wrong} | {result.unanswered} | {result.samples} "
            f"| {result.used:.0%} | {result.seconds:.0f} |",
            flush=True,
        )
    for name, result in by_neighbour.items():
        for workload, summary in result.told.items():
            print(f"\n{workload}, {name}: {summary}")
    quiet, noisy = (by_neighbour[name].seconds for name in NEIGHBOURS)
    print(f"\nwith a neighbour {noisy / quiet:.2f} times as long (target: at most 3)")


def _budgets(options: argparse.Namespace) -> None:
    print("\nThe lab's own budget, image and golden state ready")
    head = ("row", "workload", "s to the first valid sample", "% of all CPUs for further ones")
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for row in options.rows.split(","):
        for budget in budgets(row, SMALL, options.budget):
            print(
                f"| {row} | {budget.workload} | {budget.first_s:.1f} | {budget.own_pct:.1f} |",
                flush=True,
            )


def _deciders(options: argparse.Namespace) -> None:
    print(f"\n{options.workload}, every metric, {options.noise} runs of a row and of itself")
    head = ("row", "metric", *(f"CV in %, neighbour: {name}" for name in NEIGHBOURS))
    more_columns = [f"20 runs show in %, neighbour: {name}" for name in NEIGHBOURS]
    print(
        "| "
        + " | ".join((*head, *more_columns))
        + " |\n|"
        + "---|" * (len(head) + len(more_columns))
    )
    for row in options.rows.split(","):
        by_share = []
        for share in NEIGHBOURS.values():
            with neighbour(share):
                by_share.append(deciders(row, options.workload, options.noise))
        for metric in [metric for metric in by_share[0] if metric in by_share[1]]:
            sides = [noises[metric] for noises in by_share]
            figures = [noise.cv_pct for noise in sides] + [noise.smallest_pct for noise in sides]
            cells = ("" if figure is None else f"{figure:.3g}" for figure in figures)
            print(f"| {row} | {metric} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
