"""Whether "9 in 10: at most" is true: plans from short pilots, then searches on that machine.

Every second machine measures two at the same time, as most do: its pilot is of such pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dssearch.bayes.bayes_search import Bayes
from dssearch.forecast import ForecastRequest, forecast, rehearse
from dssearch.pilot_noise import Pilot, RunNoise
from searchbench.machine import TURN_WALK
from searchbench.methods import COSTS, DUET_COSTS
from searchbench.plays import on_all_cores

PILOT = 10  # pairs of runs, as `plan` takes
SEARCHES = 4  # on each machine: pilots differ more than searches on one machine
CANDIDATES = 64
DROP_PCT = 20.0
NOISES = (0.03, 0.12)  # logs
TOLD = 0.9  # of the searches are to take no more runs
FIRST_SEED = 10_000  # of the searches; the plan's own rehearsals have small ones


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One machine: what was told, and what was taken."""

    paired: bool
    most_runs: float
    taken: tuple[int, ...]

    @property
    def held(self) -> float:
        """The share of the searches that took no more."""
        return sum(runs <= self.most_runs for runs in self.taken) / len(self.taken)

    @property
    def fewer(self) -> float:
        """The share that took less: runs are whole numbers, and many searches take as many."""
        return sum(runs < self.most_runs for runs in self.taken) / len(self.taken)


def play_plans(machines: int, jobs: int) -> list[Planned]:
    return [planned for _, planned in on_all_cores(_plan, range(machines), jobs)]


def plan_lines(plans: list[Planned]) -> Iterator[str]:
    yield (
        f"{len(plans)} machines, {SEARCHES} searches on each: the plan said that {TOLD:.0%} would "
        f"take at most so many runs; {_mean([plan.held for plan in plans])} took no more, "
        f"{_mean([plan.fewer for plan in plans])} took fewer; pilots of {PILOT} pairs, a drop of "
        f"{DROP_PCT:g} % among {CANDIDATES}"
    )
    for machine_plan in sorted(plans, key=lambda plan: plan.most_runs):
        way = "in duets" if machine_plan.paired else "alone"
        runs_taken = " ".join(map(str, sorted(machine_plan.taken)))
        yield f"  {way}, at most {machine_plan.most_runs:g}: {runs_taken}"


def _mean(shares: list[float]) -> str:
    error = f" ± {np.std(shares, ddof=1) / math.sqrt(len(shares)):.1%}" if len(shares) > 1 else ""
    return f"{np.mean(shares):.1%}{error}"


def _plan(machine: int) -> Planned:
    chance = np.random.default_rng([machine, 77])
    noise = math.exp(chance.uniform(*np.log(NOISES)))
    paired = machine % 2 == 0
    own = RunNoise(cost=noise, pace=TURN_WALK if paired else 0.0)
    speeds = own.pace * np.cumsum(chance.normal(size=PILOT))
    runs = speeds[:, None] + chance.normal(0.0, noise, (PILOT, 2))
    noise_seen = Pilot(turns=np.repeat(range(PILOT), 2).tolist()).noise(runs.ravel().tolist())
    search = Bayes(costs=DUET_COSTS if paired else COSTS)
    request = ForecastRequest(
        candidates=CANDIDATES, drop_pct=DROP_PCT, most_runs=2000, most_hours=None, level=0.95
    )
    plan = forecast(noise_seen, request, search, search.costs)
    drop = math.log1p(DROP_PCT / 100)
    seeds = range(FIRST_SEED + machine * SEARCHES, FIRST_SEED + (machine + 1) * SEARCHES)
    real = [rehearse(search, CANDIDATES, drop, own, seed) for seed in seeds]
    return Planned(
        paired=paired, most_runs=plan.most_runs, taken=tuple(rehearsal.runs for rehearsal in real)
    )
