"""Plays all cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from benchmarks.search.all_cores import on_all_cores
from benchmarks.search.cell import Cell
from benchmarks.search.kept_plays import KeptPlays
from benchmarks.search.kinds import Kind
from benchmarks.search.methods import OURS
from benchmarks.search.play import Play, play

CHUNK = 8  # worlds in one job

Plays = dict[tuple[Cell, str], list[Play]]


@dataclass(frozen=True, kw_only=True)
class Job:
    cell: Cell
    method: str
    seeds: range

    def __str__(self) -> str:
        """All that decides what is played."""
        cell = self.cell
        return f"{self.method}, {cell.kind}, at most {cell.most_runs} runs, {self.seeds}"


def jobs_of(cells: Iterable[Cell], worlds: int) -> list[Job]:
    """Shuffled, always in the same way, so that the time left follows from the time spent."""
    made = [
        Job(cell=cell, method=method, seeds=part)
        for cell in cells
        for method in cell.methods
        for part in _parts(cell.seeds(worlds, method))
    ]
    Random(0).shuffle(made)
    return made


def play_all(cells: Sequence[Cell], worlds: int, workers: int) -> Plays:
    """Every play of every cell, in the order of seeds."""
    found: Plays = {}

    def rest(jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Play]]]:
        return on_all_cores(_play, jobs, workers)

    for job, played in KeptPlays.of_this_code().with_the_rest(jobs_of(cells, worlds), rest):
        found.setdefault((job.cell, job.method), []).extend(played)
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
