"""A forecast of what a search will take, simulated before it starts. Core pure logic, no I/O.

The noise comes from a pilot: one candidate measured a few times against itself (A/A). With that
noise the real search is run on simulated lines whose truth is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np
from pydantic import Field

from dsharness.errors import InconclusiveError, UsageError
from dsharness.model import DECIDER, Boundary, Machine, Measurement, Sample, Value
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Costs
from dssearch.bayes.track import Floats
from dssearch.build_scatter import pct_of
from dssearch.pilot_noise import Noise, RunNoise
from dssearch.planner import TurnEnd, run_search
from dssearch.question import History, Measure, Question, Search

WORKLOAD = "rehearsed"
MACHINE = Machine(id="made up")
MOST_DROP_PCT = 100_000  # a thousand times; far above, simulations take minutes and find nothing
START = datetime(2026, 1, 1, tzinfo=UTC)
SPEEDS = 1  # a stream of chance of its own


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """What one run gives; both values are logs."""

    cost: float
    rate: float
    machine: Machine = MACHINE
    session: int = 0  # one start of the lab
    start: int = 0  # which one of the candidate's server; 0: not known
    steal_pct: float = 0.0
    value: float | None = None  # of the metric that decides, where that is not the cost: no log
    quantum: float = 0.0  # the step in which that is read
    failed: str = ""  # why it may not be used
    at_least: float | None = None  # its cost, where its time was up: a log


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


def rehearse(search: Search, candidates: int, drop: float, noise: RunNoise, seed: int) -> Rehearsed:
    """Return a step of ``drop`` (a log) at a place the seed decides."""
    chance = np.random.default_rng([seed, candidates])
    line = tuple(f"c{number}" for number in range(candidates))
    step = int(chance.integers(1, candidates))
    index = {name: place for place, name in enumerate(line)}
    speeds = np.random.default_rng([seed, candidates, SPEEDS])
    speed: list[float] = [0.0]

    def run(name: str, turn: int) -> SimulatedRun:
        while len(speed) <= turn:
            speed.append(speed[-1] + noise.pace * float(speeds.normal()))
        level = drop * (index[name] >= step) + speed[turn]
        own = noise.cost * float(chance.normal())
        rate = noise.rate_slope * own + noise.rate_rest * float(chance.normal())
        return SimulatedRun(cost=level + own, rate=-level - rate, start=turn + 1)

    boundary, samples = walk(search, line, run)
    names_step = boundary.found and boundary.after is not None
    return Rehearsed(
        runs=sum(len(group) for group in samples.values()),
        builds=len(samples),
        named=names_step,
        right=names_step and line[step] in boundary.suspects,
    )


def walk(
    search: Search, line: tuple[str, ...], run: Simulated, metric: str = DECIDER
) -> tuple[Boundary, Mapping[str, tuple[Sample, ...]]]:
    """Run a search to its end."""
    question = Question(
        series_id="made up", line=line, workload_id=WORKLOAD, settings_id="default", metric=metric
    )
    end = run_search(question, search, _MadeUp(run=run, metric=metric), History())
    assert end.boundary is not None  # noqa: S101 - a made-up world has always more to measure
    return end.boundary, end.history.samples


@dataclass(frozen=True, kw_only=True)
class _MadeUp:
    """A ``TurnSource`` without a lab."""

    run: Simulated
    metric: str
    serial: Iterator[int] = field(default_factory=count)

    def turn(self, step: Measure) -> TurnEnd:
        samples: list[Sample] = []
        for name in step.candidates:
            run = self.run(name, step.turn)
            if run is None:
                return TurnEnd(samples=tuple(samples), unmeasurable={name: "does not build"})
            sample = _sample(name, run, step.turn, next(self.serial))
            if run.value is not None:
                sample.metrics[self.metric] = _measured(run.value, run.quantum)
            samples.append(sample)
        return TurnEnd(samples=tuple(samples))


def _measured(value: float, quantum: float = 0.0) -> Measurement:
    facts: dict[str, Any] = {"value": value, "unit": "", "quantum": quantum}
    return Measurement.model_construct(**facts)


def _sample(name: str, run: SimulatedRun, turn: int, number: int) -> Sample:
    """Make one without validation: a simulation takes thousands."""
    at_least = {} if run.at_least is None else {"cost": _measured(math.exp(run.at_least))}
    return Sample.model_construct(
        id=f"{name}/{number}",
        campaign_id="made up",
        candidate_id=name,
        settings_id="default",
        workload_id=WORKLOAD,
        image_key="",
        started_at=(START + timedelta(seconds=number)).isoformat(),
        session=str(run.session),
        start=run.start,
        at_least=at_least,
        duration_s=1.0,
        operations=1,
        metrics={"cost": _measured(math.exp(run.cost)), "rate": _measured(math.exp(run.rate))},
        machine=run.machine,
        facts={},
        calibrator_us=1.0,
        steal_pct=run.steal_pct,
        errors=0,
        per_second=(),
        invalid=(run.failed,) if run.failed else (),
        turn=turn,
        workload=None,
        log="",
    )


REHEARSALS = 40
LEAST_REHEARSALS = 12
PROOF = 7.0  # nats that tell a step from none


class Forecast(Value):
    """The figures of a plan; chances from 0 to 1."""

    noise_pct: float = Field(description="by how much one run varies")
    noise_interval_pct: tuple[float, float]
    pilot_runs: int
    drop_pct: float
    candidates: int
    smallest_visible_pct: float = Field(description="with the runs that may be spent")
    runs: float
    most_runs: float = Field(description="of 9 searches in 10")
    builds: float
    hours: float
    rehearsals: int
    right: float = Field(description="chance that the culprit is named, and no other")
    wrong: float = Field(description="chance that another one is named")
    right_error: float = Field(description="one standard error of it, from so few rehearsals")
    wrong_error: float


@dataclass(frozen=True, kw_only=True)
class ForecastRequest:
    """What a search is to find."""

    candidates: int
    drop_pct: float
    most_runs: int
    most_hours: float | None
    level: float


def forecast(noise: Noise, request: ForecastRequest, search: Search, costs: Costs) -> Forecast:
    """Simulate the search with that noise and that drop."""
    rehearsals: list[Rehearsed] = []
    drop = math.log1p(request.drop_pct / 100)
    while len(rehearsals) < REHEARSALS and not _clear(rehearsals):
        rehearsals.append(
            rehearse(
                search, request.candidates, drop, noise.drawn(len(rehearsals)), seed=len(rehearsals)
            )
        )
    runs = np.array([rehearsal.runs for rehearsal in rehearsals], dtype=np.float64)
    builds = np.array([rehearsal.builds for rehearsal in rehearsals], dtype=np.float64)
    right, wrong = (sum(hits) / len(rehearsals) for hits in _hits(rehearsals))
    seconds = runs.mean() * costs.run_s + builds.mean() * (costs.start_s + costs.prepare_s)
    return Forecast(
        noise_pct=pct_of(noise.size),
        noise_interval_pct=(pct_of(noise.low), pct_of(noise.high)),
        pilot_runs=noise.runs,
        drop_pct=request.drop_pct,
        candidates=request.candidates,
        smallest_visible_pct=pct_of(smallest_visible(noise.size, request.most_runs)),
        runs=round(float(runs.mean()), 1),
        most_runs=_exceeded_by_a_tenth(runs),
        builds=round(float(builds.mean()), 1),
        hours=round(float(seconds) / 3600, 3),
        right=round(right, 3),
        wrong=round(wrong, 3),
        right_error=round(_error(right, len(rehearsals)), 3),
        wrong_error=round(_error(wrong, len(rehearsals)), 3),
        rehearsals=len(rehearsals),
    )


def _hits(rehearsals: Sequence[Rehearsed]) -> tuple[list[bool], list[bool]]:
    return [rehearsal.right for rehearsal in rehearsals], [
        rehearsal.wrong for rehearsal in rehearsals
    ]


def _exceeded_by_a_tenth(runs: Floats) -> float:
    """Return the 90th percentile of a future search, as an order statistic of these."""
    rank = min(len(runs), math.ceil(0.9 * (len(runs) + 1)))
    return float(np.sort(runs)[rank - 1])


def _error(share: float, count: int) -> float:
    """Return one standard error, with half a case more of each kind: 100 % has one too."""
    safe = (share * count + 0.5) / (count + 1)
    return math.sqrt(safe * (1 - safe) / count)


def smallest_visible(noise: float, runs: int) -> float:
    """Return the log of the smallest step that this many runs can distinguish from none."""
    told_apart = noise * math.sqrt(8 * PROOF / max(2, runs))
    return max(told_apart, Certainty.visible * noise, Belief().least_log)


def refuse_the_invisible(noise: Noise, request: ForecastRequest, duration_s: float) -> None:
    """Raise InconclusiveError for a drop that clearly cannot be seen; it says what would help."""
    visible = smallest_visible(noise.size, request.most_runs)
    drop = math.log1p(request.drop_pct / 100)
    if drop >= visible:
        return
    hints = [f"look for {pct_of(visible):.0f} % and more"]
    if drop >= Belief().least_log:
        longer = duration_s * (visible / drop) ** 2
        hints = [
            f"runs of {longer:.0f} s instead of {duration_s:g} s (duration_s in matrix.yaml)",
            "more users for a steadier mean",
            "a workload with less noise",
            *hints,
        ]
    raise InconclusiveError(
        f"a drop of {request.drop_pct:g} % is too small to be seen: one run varies by "
        f"{pct_of(noise.size):.1f} %, and nothing below {pct_of(visible):.1f} % is looked for",
        hint=", or ".join(hints),
    )


def refuse_without_chance(plan: Forecast, request: ForecastRequest, duration_s: float) -> None:
    """Raise InconclusiveError when the simulated searches failed, or take too long."""
    late = request.most_hours is not None and plan.hours > request.most_hours
    if plan.right >= request.level - 0.15 and not late:
        return
    why = (
        f"{plan.hours:.2f} hours are more than {request.most_hours:g}"
        if late
        else f"only {plan.right:.0%} of the simulated searches named the culprit"
    )
    raise InconclusiveError(
        f"a drop of {plan.drop_pct:g} % among {plan.candidates} candidates cannot be found like "
        f"this: one run varies by {plan.noise_pct:.1f} %, and {why}",
        hint=f"runs of {4 * duration_s:g} s instead of {duration_s:g} s would halve the noise; or "
        "more users, a workload with less noise, fewer candidates"
        + (", more hours" if late else ""),
    )


def _clear(rehearsals: Sequence[Rehearsed]) -> bool:
    """Return whether it is already clear that most simulated searches fail."""
    return (
        len(rehearsals) >= LEAST_REHEARSALS
        and sum(rehearsal.right for rehearsal in rehearsals) < len(rehearsals) / 2
    )


def check(request: ForecastRequest) -> None:
    """Raise UsageError for values that allow no plan."""
    if not 0 < request.drop_pct <= MOST_DROP_PCT:
        raise UsageError(
            f"--smallest {request.drop_pct:g}: must be above 0, and at most {MOST_DROP_PCT}",
            hint="in per cent: 10",
        )
    if request.candidates < 2:
        raise UsageError(
            f"--candidates {request.candidates}: a step lies between two", hint="2 or more"
        )
