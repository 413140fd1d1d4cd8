"""Plays of all cells, on all cores, with progress on stderr.

They are kept on disk: a benchmark that was interrupted goes on where it stopped. They count while
nothing changes that decides them: the search, and the simulation.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from dsharness.content_key import content_key
from searchbench.cell import Cell
from searchbench.findings import Said
from searchbench.kinds import Kind
from searchbench.methods import OURS
from searchbench.play import Play, Wrong, play

Task = TypeVar("Task")
Result = TypeVar("Result")

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def on_all_cores(
    call: Callable[[Task], Result], jobs: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result]]:
    """Each job with its result, in the order in which they end."""
    for name in THREADS:  # one process a core is enough
        os.environ[name] = "1"
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(call, job): job for job in jobs}
        started = time.monotonic()
        for jobs_done, future in enumerate(as_completed(waiting), 1):
            yield waiting[future], future.result()
            _tell(jobs_done, len(jobs), time.monotonic() - started)


def _tell(jobs_done: int, total: int, spent_s: float) -> None:
    left_s = spent_s * (total - jobs_done) / jobs_done
    end = "\n" if jobs_done == total else ""
    text = f"\r{jobs_done}/{total} jobs, {spent_s:.0f} s, about {left_s:.0f} s left   "
    print(text, end=end, file=sys.stderr, flush=True)


ROOT = Path(__file__).parents[3]
SIMULATION = (
    "bounds",
    "driver",
    "findings",
    "kinds",
    "machine",
    "methods",
    "peers",
    "play",
    "simulated_proof",
    "worlds",
)
CODE = (
    "bisect/dssearch/**/*.py",
    "bisect/dsbisect/search_options.py",
    "harness/dsharness/measure/metrics.py",
    *(f"benchmarks/search/searchbench/{name}.py" for name in SIMULATION),
)
FOLDER = ROOT / "results" / "runs" / "search"


def code_key() -> str:
    """Of everything that decides a play."""
    files = (file for pattern in CODE for file in sorted(ROOT.glob(pattern)))
    return content_key([file.read_text(encoding="utf-8") for file in files])


@dataclass(frozen=True, kw_only=True)
class KeptPlays:
    """A file with a line for each job that was played."""

    file: Path

    @classmethod
    def of_this_code(cls) -> KeptPlays:
        return cls(file=FOLDER / f"plays-{code_key()}.jsonl")

    def known(self) -> dict[str, list[Play]]:
        """By job; a line that was not written to its end counts for nothing."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return {
            document["job"]: [_play_of(facts) for facts in document["plays"]]
            for document in _documents(lines)
        }

    def keep(self, job: object, plays: Sequence[Play]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"job": str(job), "plays": [asdict(play) for play in plays]})
        with self.file.open("a") as out:
            out.write(f"\n{line}\n")  # after what was cut off, too

    def with_the_rest(
        self,
        jobs: Sequence[Task],
        play: Callable[[Sequence[Task]], Iterable[tuple[Task, list[Play]]]],
    ) -> Iterator[tuple[Task, list[Play]]]:
        """What is known, then what ``play`` makes of the other jobs; each is kept at once."""
        stored_plays = self.known()
        yield from ((job, stored_plays[str(job)]) for job in jobs if str(job) in stored_plays)
        for job, new_plays in play([job for job in jobs if str(job) not in stored_plays]):
            self.keep(job, new_plays)
            yield job, new_plays


def _documents(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue  # empty, or cut off


def _play_of(facts: dict[str, Any]) -> Play:
    return Play(**{**facts, "said": Said(facts["said"]), "wrong": Wrong(facts["wrong"])})


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
    job_list = [
        Job(cell=cell, method=method, seeds=part)
        for cell in cells
        for method in cell.methods
        for part in _parts(cell.seeds(worlds, method))
    ]
    Random(0).shuffle(job_list)
    return job_list


def play_all(cells: Sequence[Cell], worlds: int, workers: int) -> Plays:
    """Every play of every cell, in the order of seeds."""
    by_cell: Plays = {}
    for job, played in play_jobs(jobs_of(cells, worlds), workers):
        by_cell.setdefault((job.cell, job.method), []).extend(played)
    return {
        (cell, method): sorted(by_cell[cell, method], key=lambda play: play.seed)
        for cell in cells
        for method in cell.methods
    }


def play_jobs(jobs: Sequence[Job], workers: int) -> Iterator[tuple[Job, list[Play]]]:
    """Each job with its plays, in the order in which they end."""

    def play_rest(missing: Sequence[Job]) -> Iterator[tuple[Job, list[Play]]]:
        return on_all_cores(_play, missing, workers)

    return KeptPlays.of_this_code().with_the_rest(jobs, play_rest)


def find(plays: Plays, kind: Kind, method: str = OURS) -> list[Play] | None:
    """None where that was not played."""
    return next(
        (
            cell_plays
            for (cell, name), cell_plays in plays.items()
            if name == method and cell.kind == kind
        ),
        None,
    )


def _play(job: Job) -> list[Play]:
    return [play(job.method, job.cell.kind, seed, job.cell.most_runs) for seed in job.seeds]


def _parts(seeds: range) -> Iterator[range]:
    return (seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK))
