"""A world with a known truth: candidates cost what it says, with noise, and some break."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CLIENT_CPU, COST, CPU, RATE
from dsharness.model import DECIDER, Boundary, Sample, Turn, TurnState
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty
from dssearch.planner import TurnEnd, run_search
from dssearch.question import History, Measure, Question, Search

TEN_RUNS = Bayes(certainty=Certainty(least_runs=5))  # of both neighbours: there is time to stop it


def sample_of(row: str, cost: float, turn: int, **changes: object) -> Sample:
    facts = {
        "id": f"{row}/{turn}",
        "campaign_id": "c",
        "candidate_id": row,
        "settings_id": "default",
        "workload_id": "w",
        "image_key": "k",
        "started_at": "2026-01-01T00:00:00+00:00",
        "duration_s": 3.0,
        "operations": 100,
        "turn": turn,
        "metrics": {
            "rate": RATE.measured(1000.0 / cost),
            "cpu": CPU.measured(cost * 1000),
            "cost": COST.measured(cost),
            "client-cpu": CLIENT_CPU.measured(100.0),
        },
        "machine": {"id": "one"},
        "calibrator_us": 1000.0,
        "steal_pct": 0.0,
        "errors": 0,
        "per_second": (1.0,),
    }
    return Sample.model_validate({**facts, **changes})


def with_metric(sample: Sample, metric: Metric, value: float | None) -> Sample:
    """The same run with another value of that metric, or without it."""
    metrics = {name: found for name, found in sample.metrics.items() if name != metric.name}
    if value is not None:
        metrics[metric.name] = metric.measured(value)
    return sample.model_copy(update={"metrics": metrics})


def turns_of(samples: Iterable[Sample]) -> list[Turn]:
    """The turns that they are of."""
    names: dict[int, list[str]] = {}
    for sample in samples:
        names.setdefault(sample.turn, []).append(sample.candidate_id)
    facts: Iterable[dict[str, Any]] = (
        {"number": number, "candidates": tuple(each), "state": TurnState.DONE}
        for number, each in names.items()
    )
    return [Turn.model_construct(**each) for each in facts]


@dataclass
class World:
    """Answers the measurements a search asks for, and counts them."""

    costs: Mapping[str, float]
    noise: float = 0.02
    seed: int = 0
    broken: frozenset[str] = frozenset()  # cannot be served at all
    failing: frozenset[str] = frozenset()  # are served, but no run is usable
    taken: list[Sample] = field(default_factory=list)
    asked: list[Measure] = field(default_factory=list)
    most: int = 2000  # turns

    def sample(self, row: str, turn: int) -> Sample:
        chance = random.Random(f"{self.seed}/{row}/{turn}")
        cost = self.costs[row] * chance.lognormvariate(0, self.noise)
        invalid = ("the server died during the load",) if row in self.failing else ()
        return sample_of(row, cost, turn, invalid=invalid)

    def search(self, search: Search, most: int = 2000, *, metric: str = DECIDER) -> Boundary:
        question = Question(
            series_id="s", line=tuple(self.costs), workload_id="w", settings_id="default",
            metric=metric,
        )  # fmt: skip
        self.most = most
        known = History.of_samples(self.taken)
        boundary = run_search(question, search, self, known, turns_of(self.taken)).boundary
        if boundary is None:
            raise AssertionError("the search did not end")
        return boundary

    def turn(self, step: Measure) -> TurnEnd | None:
        """What a ``TurnSource`` is asked."""
        self.most -= 1
        if self.most < 0:
            return None
        self.asked.append(step)
        taken: list[Sample] = []
        for row in step.candidates:
            if row in self.broken:
                self.taken += taken
                return TurnEnd(
                    samples=tuple(taken), unmeasurable={row: "its image could not be built"}
                )
            taken.append(self.sample(row, step.turn))
        self.taken += taken
        return TurnEnd(samples=tuple(taken))
