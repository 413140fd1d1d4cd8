"""How long a search takes on one, two and four machines: real queue and planner, simulated clock.

A machine is busy for as long as its builds and runs would take; planning takes no time. What is
under way is planned and not known, as with real workers, until the clock comes to its end.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from fleet_of_worlds import QUESTION, Fleet, WorldStudy, campaign_id_of, now
from worlds import World

from dsharness.model import Boundary, RunState
from dsmany.attached import begin_run
from dsresults.store import Store
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Costs

CANDIDATES, BUILD_S, RUN_S, NOISE = 128, 60.0, 5.0, 0.05
LINE = tuple(f"c{number:03}" for number in range(CANDIDATES))
ENDS = (LINE[0], LINE[-1])


@dataclass
class SimulatedFleet:
    """Machines with a common clock."""

    fleet: Fleet
    travels: bool  # a build of one machine is at once there for the others
    now_s: float = 0.0
    ends_s: dict[str, tuple[float, Mapping[str, Any]]] = field(default_factory=dict)
    built: dict[str, set[str]] = field(default_factory=dict)

    def run(self, run_id: str) -> None:
        """Do whatever is due; then let the clock go on to the next end of a turn."""
        waiting = [job for job in self.fleet.jobs() if job["args"].get("run") == run_id]
        started = {job["id"] for _, job in self.ends_s.values()}
        for job in waiting:
            if job["task_name"] == "dsbisect.advance":
                self.fleet.do(job)
                return
            machine = job["queue_name"].removeprefix("machine/")
            if job["id"] not in started and machine not in self.ends_s:
                self.ends_s[machine] = (self.now_s + self._takes_s(machine, job), job)
        if not self.ends_s:
            next(iter(self.fleet.workers.values())).reap()
            return
        machine = min(self.ends_s, key=lambda name: self.ends_s[name][0])
        self.now_s, job = self.ends_s.pop(machine)
        self.fleet.do(job)

    def _takes_s(self, machine: str, job: Mapping[str, Any]) -> float:
        """Both ends are built before anything else, as in a lab for commits."""
        runs = self._candidates(job) if job["task_name"] == "dsbisect.take" else ()
        builds_there = self.built.setdefault("" if self.travels else machine, set())
        missing = {*ENDS, *runs} - builds_there
        builds_there |= missing
        return BUILD_S * len(missing) + RUN_S * len(runs)

    def _candidates(self, job: Mapping[str, Any]) -> tuple[str, ...]:
        turns = self.fleet.store.planned_turns()
        return next(turn.candidates for turn in turns if turn.id == job["args"]["turn"])


@dataclass(frozen=True, kw_only=True)
class Searched:
    """How one search went."""

    wall_s: float
    named: str
    samples: int
    builds: int


def searched(store: Store, machines: int, noises: float, seed: int, *, travels: bool) -> Searched:
    """A step of so many noises, somewhere."""
    step = random.Random(f"{noises}/{seed}").randrange(1, CANDIDATES)
    costs = {name: math.exp(noises * NOISE * (place >= step)) for place, name in enumerate(LINE)}
    study = WorldStudy(
        world=World(costs, noise=NOISE, seed=seed),
        question=replace(QUESTION, line=LINE),
        search=Bayes(costs=Costs(run_s=RUN_S, start_s=0.0, prepare_s=BUILD_S)),
        begins_with=ENDS,
    )
    fleet = Fleet(store, [f"m{number}" for number in range(machines)], study=study)
    try:
        request = {"noises": noises, "seed": seed, "machines": machines, "travels": travels}
        run = begin_run(store, request, machines=machines, class_name="")
        simulated = SimulatedFleet(fleet=fleet, travels=travels)
        while now(store, run).state is RunState.RUNNING:
            simulated.run(run.id)
        campaign = store.campaign(campaign_id_of(run, 0))
    finally:
        fleet.end()
    assert campaign is not None
    assert campaign.boundary is not None, now(store, run).why
    return Searched(
        wall_s=simulated.now_s,
        named=_named(campaign.boundary, LINE[step]),
        samples=len(store.samples(campaign_id=campaign.id)),
        builds=sum(map(len, simulated.built.values())),
    )


def _named(boundary: Boundary, step: str) -> str:
    """A step as small as the noise may be one that a search says it could not have seen."""
    if boundary.after == step:
        return "right"
    return "wrong" if boundary.found else "none"


def curve(store: Store, seeds: int) -> Iterator[str]:
    """A table, row by row."""
    yield from (
        "| step | builds | machines | wall time | samples | builds made | right, wrong, none |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    )
    for noises in (4.0, 1.0):
        yield _row(store, seeds, 1, noises, travels=True)
        for travels in (True, False):
            for machines in (2, 4):
                yield _row(store, seeds, machines, noises, travels=travels)


def _row(store: Store, seeds: int, machines: int, noises: float, *, travels: bool) -> str:
    searches = [searched(store, machines, noises, seed, travels=travels) for seed in range(seeds)]
    walls = [search.wall_s for search in searches]
    error = stdev(walls) / math.sqrt(len(walls)) if len(walls) > 1 else math.nan
    samples = fmean(search.samples for search in searches)
    builds = fmean(search.builds for search in searches)
    outcomes = [search.named for search in searches]
    counts = ", ".join(str(outcomes.count(outcome)) for outcome in ("right", "wrong", "none"))
    transport = "" if machines == 1 else "travel" if travels else "each its own"
    return (
        f"| {noises:g} noises | {transport} | {machines} | {fmean(walls):.0f} ± {error:.0f} s "
        f"| {samples:.0f} | {builds:.0f} | {counts} |"
    )
