"""How long a proved search takes on one, two and three worker processes, by the real clock.

Queue, planner, store and workers are real; labs wait for as long as a build or a run takes, divided
by ``FASTER``. So what a step costs counts as much more than with real builds.
"""

from __future__ import annotations

import math
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from fleet_of_worlds import QUESTION, WORKLOAD, WorldLab, WorldStudy
from postgresql_cluster import Cluster
from worlds import World

from benchmarks.shared_faults import WorldWorkers, end_worker
from dsharness.model import Finding, Prepared, RunState, SharedRun
from dsharness.process.deadline import Deadline, wait_until
from dslab.campaign_loop import Answers, LabAnswers
from dsmany.attached import begin_run
from dsmany.shared_answers import campaigns_of
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Costs

CANDIDATES, NOISE, NOISES = 128, 0.05, 4.0
BUILD_S, CLEAN_S, RUN_S = 60.0, 180.0, 5.0
FASTER = 20
LINE = tuple(f"c{at:03}" for at in range(CANDIDATES))
LIMIT_S = 600.0


@dataclass
class SlowLab(WorldLab):
    """A lab whose builds and runs take time; ``builds`` is a folder that says what was built."""

    builds: Path = Path()

    def ready(self, candidate: str) -> None:
        mark = self.builds / candidate
        if not mark.exists():
            with self.spent.on("builds"):
                time.sleep((CLEAN_S if candidate.endswith("-clean") else BUILD_S) / FASTER)
            mark.touch()


@dataclass
class ProvedStudy(WorldStudy):
    """A search and its proof, whose candidates are known when the step is."""

    begins_with: tuple[str, ...] = (LINE[0], LINE[-1])

    def answer(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None
    ) -> Finding | None:
        del store, prepared
        ask = answers.within("")
        boundary = ask(self.question, WORKLOAD, self.search, "commits").boundary
        if boundary is not None and boundary.after is not None:
            pairs = [
                tuple(f"{name}-clean" for name in (boundary.before or "", boundary.after)),
                (LINE[-1], "bad-without"),
                (LINE[0], "good-with"),
            ]
            self.together([lambda pair=pair: self._compared(ask, pair) for pair in pairs])
        return None

    def _compared(self, ask: Answers, pair: tuple[str, ...]) -> None:
        ask(replace(self.question, line=pair), WORKLOAD, self.search, "commits")

    @contextmanager
    def world_lab(self) -> Iterator[Any]:
        """Both ends are built before anything else."""
        with super().world_lab() as lab:
            for end in self.begins_with:
                lab.ready(end)
            yield lab


def world_of(seed: int) -> World:
    """A step somewhere; what a proof compares costs what it must."""
    step = random.Random(f"{NOISES}/{seed}").randrange(1, CANDIDATES)
    slow = math.exp(NOISES * NOISE)
    costs = {name: slow if place >= step else 1.0 for place, name in enumerate(LINE)}
    clean = {f"{name}-clean": cost for name, cost in costs.items()}
    return World({**costs, **clean, "bad-without": 1.0, "good-with": slow}, noise=NOISE, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """So many workers, each with its own builds or with those of all."""

    machines: int
    travels: bool

    def measure(self, cluster: Cluster, seed: int) -> tuple[float, float]:
        """When the step was named and when all was proved, in seconds of the slower clock."""
        url = cluster.url(cluster.new_database())
        with Store.open(url) as store, TemporaryDirectory() as place:
            folder = Path(place)
            workers = WorldWorkers(
                url=url, folder=folder, study_of=lambda name: self._study(name, folder, seed)
            )
            names = [f"m{number}" for number in range(self.machines)]
            pids = [workers.start(name) for name in names]
            try:
                begin = time.time()
                run = begin_run(store, {"seed": seed}, machines=self.machines, class_name="")
                wait_until(lambda: _ended(store, run), Deadline.after(LIMIT_S), what="the proof")
                proved = time.time() - begin
            finally:
                for pid in pids:
                    end_worker(pid, signal.SIGINT)
            return FASTER * (_named_at(store, run) - begin), FASTER * proved

    def _study(self, name: str, folder: Path, seed: int) -> WorldStudy:
        builds = folder / ("builds" if self.travels else f"builds-{name}")
        builds.mkdir(exist_ok=True)
        world = world_of(seed)
        lab = SlowLab(
            world, machine=name, builds=builds, before_sample=lambda: time.sleep(RUN_S / FASTER)
        )
        search = Bayes(costs=Costs(run_s=RUN_S, start_s=0.0, prepare_s=BUILD_S, paired=True))
        return ProvedStudy(
            labs={name: lab},
            machine=name,
            world=world,
            search=search,
            question=replace(QUESTION, line=LINE),
        )


def _ended(store: Store, run: SharedRun) -> bool | None:
    current = store.get(SharedRun, run.id)
    assert current is not None
    if current.state is RunState.FAILED:
        raise AssertionError(current.why)
    return current.state is RunState.DONE or None


def _named_at(store: Store, run: SharedRun) -> float:
    finished = campaigns_of(store, run)[0].finished_at
    assert finished is not None
    return datetime.fromisoformat(finished).timestamp()


def worker_curve(cluster: Cluster, searches: int) -> Iterator[str]:
    """A table, row by row."""
    yield "| workers | builds | step named after | proved after |"
    yield "| --- | --- | --- | --- |"
    for machines, travels in ((1, False), (2, False), (2, True), (3, True)):
        cell = Cell(machines=machines, travels=travels)
        times = [cell.measure(cluster, seed) for seed in range(searches)]
        named_s, proved_s = (fmean(column) for column in zip(*times, strict=True))
        transport = "" if machines == 1 else "travel" if travels else "each its own"
        yield f"| {machines} | {transport} | {named_s:.0f} s | {proved_s:.0f} s |"
