"""A search on a simulated line whose truth is known. Core pure logic, no I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

import numpy as np

from dsharness.model import Boundary, Machine, Measurement, Sample
from dssearch.question import History, Measure, Question, Search
from dssearch.search_loop import TurnEnd, run_search

WORKLOAD = "rehearsed"
MACHINE = Machine(id="made up")
START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """What one run gives; both values are logs."""

    cost: float
    rate: float
    machine: Machine = MACHINE
    session: int = 0  # one start of the lab


# Of a candidate in a turn; None: it cannot be built.
Simulated = Callable[[str, int], SimulatedRun | None]


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """How one search went."""

    runs: int
    builds: int
    named: bool
    right: bool

    @property
    def wrong(self) -> bool:
        return self.named and not self.right


@dataclass(frozen=True, kw_only=True)
class RunNoise:
    """Of made-up runs, on the log scale: Gaussian, and the rate follows the cost in part."""

    cost: float
    rate_slope: float = 1.0
    rate_rest: float = 0.0


def rehearse(search: Search, candidates: int, drop: float, noise: RunNoise, seed: int) -> Rehearsed:
    """A step of ``drop`` (a log) at a place the seed decides."""
    chance = np.random.default_rng([seed, candidates])
    line = tuple(f"c{number}" for number in range(candidates))
    step = int(chance.integers(1, candidates))
    index = {name: at for at, name in enumerate(line)}

    def run(name: str, _: int) -> SimulatedRun:
        level = drop * (index[name] >= step)
        own = noise.cost * float(chance.normal())
        rate = noise.rate_slope * own + noise.rate_rest * float(chance.normal())
        return SimulatedRun(cost=level + own, rate=-level - rate)

    boundary, taken = walk(search, line, run)
    named = boundary.found and boundary.after is not None
    return Rehearsed(
        runs=sum(len(group) for group in taken.values()),
        builds=len(taken),
        named=named,
        right=named and line[step] in boundary.suspects,
    )


def walk(
    search: Search, line: tuple[str, ...], run: Simulated
) -> tuple[Boundary, Mapping[str, tuple[Sample, ...]]]:
    """Run a search to its end."""
    question = Question(series_id="made up", line=line, workload_id=WORKLOAD, settings_id="default")
    end = run_search(question, search, _MadeUp(run=run), History())
    assert end.boundary is not None  # noqa: S101 - a made-up world has always more to measure
    return end.boundary, end.history.samples


@dataclass(frozen=True, kw_only=True)
class _MadeUp:
    """A ``TurnSource`` without a lab."""

    run: Simulated
    serial: Iterator[int] = field(default_factory=count)

    def turn(self, step: Measure) -> TurnEnd:
        taken: list[Sample] = []
        for name in step.candidates:
            run = self.run(name, step.turn)
            if run is None:
                return TurnEnd(samples=tuple(taken), unmeasurable={name: "does not build"})
            taken.append(_sample(name, run, step.turn, next(self.serial)))
        return TurnEnd(samples=tuple(taken))


def _measured(log: float) -> Measurement:
    return Measurement.model_construct(value=math.exp(log), unit="")


def _sample(name: str, run: SimulatedRun, turn: int, number: int) -> Sample:
    """Made without validation: a simulation takes thousands."""
    return Sample.model_construct(
        id=f"{name}/{number}",
        campaign_id="made up",
        candidate_id=name,
        settings_id="default",
        workload_id=WORKLOAD,
        image_key="",
        started_at=(START + timedelta(seconds=number)).isoformat(),
        session=str(run.session),
        duration_s=1.0,
        operations=1,
        metrics={"cost": _measured(run.cost), "rate": _measured(run.rate)},
        machine=run.machine,
        facts={},
        calibrator_us=1.0,
        steal_pct=0.0,
        errors=0,
        per_second=(),
        invalid=(),
        turn=turn,
        workload=None,
        log="",
    )
