"""Plays all cells on all cores, with progress on stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from random import Random

from benchmarks.search.cell import Cell
from benchmarks.search.kinds import Kind
from benchmarks.search.methods import OURS
from benchmarks.search.play import Play, play

CHUNK = 8  # worlds in one job
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Plays = dict[tuple[Cell, str], list[Play]]


@dataclass(frozen=True, kw_only=True)
class Job:
    cell: Cell
    method: str
    seeds: range


def jobs_of(cells: Iterable[Cell], worlds: int) -> list[Job]:
    """Shuffled, always in the same way, so that the time left follows from the time spent."""
    made = [
        Job(cell=cell, method=method, seeds=part)
        for cell in cells
        for method in cell.methods
        for part in _parts(cell.seeds(worlds))
    ]
    Random(0).shuffle(made)
    return made


def play_all(cells: Sequence[Cell], worlds: int, workers: int) -> Plays:
    """Every play of every cell, in the order of seeds."""
    for name in THREADS:  # one process a core is enough
        os.environ[name] = "1"
    jobs = jobs_of(cells, worlds)
    found: Plays = {}
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_play, job): job for job in jobs}
        started = time.monotonic()
        for done, future in enumerate(as_completed(waiting), 1):
            job = waiting[future]
            found.setdefault((job.cell, job.method), []).extend(future.result())
            _tell(done, len(jobs), time.monotonic() - started)
    return {
        (cell, method): sorted(found[cell, method], key=lambda each: each.seed)
        for cell in cells
        for method in cell.methods
    }


def find(plays: Plays, kind: Kind, method: str = OURS) -> list[Play] | None:
    """None where that was not played."""
    return next(
        (made for (cell, name), made in plays.items() if name == method and cell.kind == kind), None
    )


def _play(job: Job) -> list[Play]:
    return [play(job.method, job.cell.kind, seed, job.cell.most_runs) for seed in job.seeds]


def _parts(seeds: range) -> Iterator[range]:
    return (seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK))


def _tell(done: int, total: int, spent_s: float) -> None:
    left_s = spent_s * (total - done) / done
    end = "\n" if done == total else ""
    text = f"\r{done}/{total} jobs, {spent_s:.0f} s, about {left_s:.0f} s left   "
    print(text, end=end, file=sys.stderr, flush=True)
