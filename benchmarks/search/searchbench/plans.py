"""Whether "9 in 10: at most" is true: plans from short pilots, then searches on that machine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dssearch.bayes.bayes_search import Bayes
from dssearch.forecast import ForecastRequest, Noise, RunNoise, forecast, rehearse
from searchbench.methods import COSTS
from searchbench.plays import on_all_cores

PILOT = 10  # runs, as `plan` takes
SEARCHES = 4  # on each machine: pilots differ more than searches on one machine
CANDIDATES = 64
DROP_PCT = 20.0
NOISES = (0.03, 0.12)  # logs
TOLD = 0.9  # of the searches are to take no more runs
FIRST_SEED = 10_000  # of the searches; the plan's own rehearsals have small ones


@dataclass(frozen=True, kw_only=True)
class Planned:
    """One machine: what was told, and what was taken."""

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
        f"take at most so many runs; {_mean([each.held for each in plans])} took no more, "
        f"{_mean([each.fewer for each in plans])} took fewer; pilots of {PILOT} runs, a drop of "
        f"{DROP_PCT:g} % among {CANDIDATES}"
    )
    for each in sorted(plans, key=lambda plan: plan.most_runs):
        yield f"  at most {each.most_runs:g}: {' '.join(map(str, sorted(each.taken)))}"


def _mean(shares: list[float]) -> str:
    error = f" ± {np.std(shares, ddof=1) / math.sqrt(len(shares)):.1%}" if len(shares) > 1 else ""
    return f"{np.mean(shares):.1%}{error}"


def _plan(machine: int) -> Planned:
    chance = np.random.default_rng([machine, 77])
    noise = math.exp(chance.uniform(*np.log(NOISES)))
    pilot = chance.normal(0.0, noise, PILOT)
    seen = Noise.seen(float(pilot.std(ddof=1)), freedom=PILOT - 1, runs=PILOT)
    search = Bayes(costs=COSTS)
    wanted = ForecastRequest(
        candidates=CANDIDATES, drop_pct=DROP_PCT, most_runs=2000, most_hours=None, level=0.95
    )
    told = forecast(seen, wanted, search, COSTS)
    drop = math.log1p(DROP_PCT / 100)
    seeds = range(FIRST_SEED + machine * SEARCHES, FIRST_SEED + (machine + 1) * SEARCHES)
    real = [rehearse(search, CANDIDATES, drop, RunNoise(cost=noise), seed) for seed in seeds]
    return Planned(most_runs=told.most_runs, taken=tuple(each.runs for each in real))
