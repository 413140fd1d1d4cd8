"""`make bench-many`: what many machines, runs and samples cost, and what more machines gain.

make bench-many                                      100,000 and 1,000,000 samples; the curve
make bench-many BENCH="--samples 10000000 --searches 0"  without the curve; 20 GB of disk
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from postgresql_cluster import running_cluster

from benchmarks.many.figure import Figure
from benchmarks.many.filled_store import fill
from benchmarks.many.fleet_costs import FleetCosts, long_line
from benchmarks.many.pages import pages
from benchmarks.many.queue_latency import queue_figures
from benchmarks.many.wall_time import curve
from benchmarks.many.worker_curve import FASTER, worker_curve
from dsbisect.program import keep_freed_memory
from dsresults.store import Store

HEAD = "| what | at most | measured | |\n| --- | --- | --- | --- |"


def main() -> int:
    """Print all tables; 1 where a target was missed."""
    parser = argparse.ArgumentParser(prog="make bench-many", description=__doc__)
    parser.add_argument("--samples", default="100000,1000000", help="separated by commas")
    parser.add_argument("--machines", type=int, default=50)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--searches", type=int, default=6, help="of each cell of the curve")
    parser.add_argument("--workers", type=int, default=2, help="searches by real workers")
    options = parser.parse_args()
    keep_freed_memory()  # as every command does
    missed = 0
    for samples in [int(number) for number in options.samples.split(",") if number]:
        print(
            f"\n{samples:,} samples, {options.machines} machines, {options.runs} runs; "
            f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}\n\n{HEAD}"
        )
        for figure in _costs(samples, options.machines, options.runs):
            print(figure, flush=True)
            missed += figure.met is False
    if options.searches:
        print("\n128 candidates, a build takes 60 s, a run 5 s\n")
        with running_cluster() as cluster, Store.open(cluster.url(cluster.new_database())) as store:
            for row in curve(store, options.searches):
                print(row, flush=True)
    if options.workers:
        print(f"\nThe same and its proof by worker processes, {FASTER} times as fast\n")
        with running_cluster() as cluster:
            for row in worker_curve(cluster, options.workers):
                print(row, flush=True)
    return 1 if missed else 0


def _costs(samples: int, machines: int, runs: int) -> list[Figure]:
    with running_cluster() as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.execute(f"ALTER SYSTEM SET max_connections = {20 + 8 * machines}")
        cluster.restart()
        url = cluster.url(cluster.new_database())
        with Store.open(url) as store:
            campaign, took_s = fill(store, samples)
            print(f"filled in {took_s:.0f} s", file=sys.stderr)
            figures = FleetCosts(store=store, machines=machines, runs=runs).measure()
            figures += pages(url, campaign, Path(folder))
        with Store.open(cluster.url(cluster.new_database())) as store:
            figures += queue_figures(store, machines)
        with Store.open(cluster.url(cluster.new_database())) as store:
            return [*figures, *long_line(store)]


if __name__ == "__main__":
    sys.exit(main())
