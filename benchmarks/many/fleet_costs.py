"""What steps of many runs on many machines cost: the real planner, worker code, queue and store.

Only what a run measures is made up, and takes no time; so all of the time is overhead.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fleet_of_worlds import QUESTION, Fleet, WorldStudy, now
from worlds import World

from benchmarks.many.asked_statements import asked
from benchmarks.many.figure import Figure
from dsharness.model import Campaign, RunState
from dsmany.attached import begin_run
from dsmany.shared_answers import campaigns_of
from dsresults.store import Store
from dssearch.planner import advance
from dssearch.question import History
from dssearch.search_record import question_of, search_of

MATRIX = Path(__file__).parents[2] / "matrix.yaml"
STEPS, LONG_STEPS = 150, 40
LONG = 100_000


@dataclass
class FleetCosts:
    """A fleet at work for many runs."""

    store: Store
    machines: int
    runs: int
    figures: list[Figure] = field(default_factory=list)

    def measure(self) -> list[Figure]:
        fleet = Fleet(self.store, [f"m{number:03}" for number in range(self.machines)])
        try:
            self._begin(fleet)
            self._steps(fleet)
            self._reaped(fleet)
        finally:
            fleet.end()
        return self.figures

    def _begin(self, fleet: Fleet) -> None:
        """Each run has its first turns; how evenly they are spread."""
        for number in range(self.runs):
            request = {"world": number, "matrix": MATRIX.read_text("utf-8")}
            begin_run(self.store, request, machines=2, class_name="")
        for kind in ("advance", "prepare", "advance"):
            self._all(fleet, kind)
        self._all(fleet, "take", limit=2 * self.machines)
        self._all(fleet, "advance")
        load = Counter(turn.machine for turn in self.store.planned_turns())
        most, least = max(load.values()), min(load[name] for name in fleet.workers)
        self.figures.append(
            Figure(
                what=f"turns that wait for a machine; {self.runs} runs on 2 each",
                told=f"{least} to {most}",
                met=most <= 4 * self.runs // self.machines and least > 0,
                target=f"about {2 * self.runs // self.machines}",
            )
        )

    def _all(self, fleet: Fleet, kind: str, limit: int = 10**9) -> None:
        for job in fleet.jobs():
            if job["task_name"] == f"dsbisect.{kind}" and limit > 0:
                fleet.do(job)
                limit -= 1

    def _steps(self, fleet: Fleet) -> None:
        took: dict[str, list[float]] = {"take": [], "advance": []}
        cpu: dict[str, list[float]] = {}
        whole: dict[str, str] = {}
        asks: dict[str, str] = {}
        for job in self._next(fleet):
            kind = job["task_name"].removeprefix("dsbisect.")
            with asked(self.store) as work:
                fleet.do(job)
            took.setdefault(kind, []).append(work.seconds)
            cpu.setdefault(kind, []).append(work.cpu_s)
            asks[kind] = f"{work.transactions} transactions: {work.counted()}"
            if len(took[kind]) <= 3:
                whole |= work.whole_tables(self.store)
        step = [a + b for a, b in zip(took["take"], took["advance"], strict=False)]
        self.figures += [
            Figure.of_times("a step: a turn of two samples, and planning the next", step, 0.1),
            Figure.of_times(f"  the turn ({asks['take']})", took["take"]).with_cpu(cpu["take"]),
            Figure.of_times(f"  planning ({asks['advance']})", took["advance"]).with_cpu(
                cpu["advance"]
            ),
            Figure(
                what="tables that a step reads from end to end",
                told=", ".join(whole) or "none",
                target="none",
                met=not whole,
            ),
        ]

    def _next(self, fleet: Fleet) -> Iterator[Mapping[str, Any]]:
        """Turns, each with the planning that follows."""
        for _ in range(STEPS):
            jobs = fleet.jobs()
            take = next(job for job in jobs if job["task_name"] == "dsbisect.take")
            yield take
            run = take["args"]["run"]
            yield from (
                job
                for job in fleet.jobs()
                if job["task_name"] == "dsbisect.advance" and job["args"]["run"] == run
            )

    def _reaped(self, fleet: Fleet) -> None:
        """What some worker does every 15 seconds, when there is nothing to be done and when all."""
        worker = next(iter(fleet.workers.values()))
        worker.reap()
        for case, limit in (("nothing is left to be done", 1.0), ("a machine of 50 died", 15.0)):
            if "died" in case:
                fleet.dies(max(fleet.workers))
            with asked(self.store) as work:
                worker.reap()
            self.figures.append(
                Figure.of_times(f"looking after {self.runs} runs: {case}", [work.seconds], limit)
            )


def long_line(store: Store) -> list[Figure]:
    """Planning for a search over 100,000 candidates, and the whole job around it."""
    line = tuple(f"c{number:06}" for number in range(LONG))
    world = World({name: 1.0 if name < "c033333" else 1.4 for name in line})
    question = replace(QUESTION, series_id="long", line=line)
    fleet = Fleet(
        store, ["a", "b"], study=WorldStudy(world=world, question=question, begins_with=line[:2])
    )
    seconds: dict[str, list[float]] = {"take": [], "advance": []}
    try:
        run = begin_run(store, {"world": "long"}, machines=2, class_name="")
        while now(store, run).state is RunState.RUNNING and len(seconds["advance"]) < LONG_STEPS:
            job = next(job for job in fleet.jobs() if job["args"]["run"] == run.id)
            begin = time.perf_counter()
            fleet.do(job)
            kind = job["task_name"].removeprefix("dsbisect.")
            seconds.setdefault(kind, []).append(time.perf_counter() - begin)
        (campaign,) = campaigns_of(store, run)
        alone = list(_planned_again(campaign, store))
    finally:
        fleet.end()
    return [
        Figure.of_times(f"planning alone, {LONG:,} candidates, CPU time", alone, 0.05),
        Figure.of_times("  with all that is read and written", seconds["advance"][2:]),
        Figure.of_times("  the turn", seconds["take"]),
    ]


def _planned_again(campaign: Campaign, store: Store) -> Iterator[float]:
    """CPU time of each step of a stored search, planned from its samples and turns."""
    question, search = question_of(campaign), search_of(campaign)
    samples, turns = store.samples(campaign_id=campaign.id), store.turns(campaign.id)
    for count in range(len(turns)):
        earlier = turns[:count]
        numbers = {turn.number for turn in earlier}
        history = History.of_samples(sample for sample in samples if sample.turn in numbers)
        begin = time.thread_time()
        advance(question, search, history, earlier)
        yield time.thread_time() - begin
