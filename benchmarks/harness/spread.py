"""One row against itself: by how much its figures vary, in several ways and by every metric."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from benchmarks.harness.budget import said_by
from dsbisect.metric_noise import MetricNoise
from dsharness.containers.engine import Engine
from dsharness.machine.host import CpuShares, available_cpus, machine_now, share_cpus
from dsharness.measure.golden_state import golden_state
from dsharness.measure.instance import serve
from dsharness.measure.sample import PROCEDURE, Bench, bench, take_sample
from dsharness.measure.ways import duet_seats, take_duet
from dsharness.model import Matrix, Procedure, Sample, Settings, Turn, Workload, largest
from dsharness.systems import Seed
from dslab.candidates import RowSupply


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one run."""

    rate: float
    cpu_us: float
    cost: float
    used: bool


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Coefficients of variation in per cent, over the runs of both."""

    way: str
    rate: float
    cpu: float
    cost: float
    ratio: float
    used: float
    seconds: float  # for a pair


Pair = tuple[Figures, Figures]
Way = Callable[[int], Pair]


@contextmanager
def two_benches(engine: Engine, matrix: Matrix, row: str) -> Iterator[tuple[Bench, Bench]]:
    """Two servers of one golden state."""
    supply = RowSupply(engine=engine, matrix=matrix)
    image, loader = (
        supply.image(name, lambda _: None) for name in (row, matrix.tools.loads["ldclt"])
    )
    loads = [load for load in matrix.workloads if load.tool == "ldclt"]
    seed = Seed(content=largest(load.content for load in loads), settings=Settings(id="default"))
    golden = golden_state(engine, image, supply.system(row), seed, progress=lambda _: None)
    cpus = share_cpus(available_cpus(), can_pin=engine.pins_cpus)
    machine = machine_now(engine, cpus)
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(
                bench(
                    engine,
                    stack.enter_context(serve(engine, golden, cpus)),
                    loader,
                    cpus,
                    machine,
                    Procedure(version=PROCEDURE),
                )
            )
            for _ in range(2)
        )
        yield first, second


def spreads(
    engine: Engine, pair: tuple[Bench, Bench], workload: Workload, pairs: int
) -> Iterator[Spread]:
    """In turn, and in duets."""
    yield _spread("A B B A", _alternating(pair, workload), pairs)
    seats = duet_seats(available_cpus(), can_move=engine.moves_cpus)
    if seats is None:
        return
    for served in pair:
        served.pace.clear()
    yield _spread("duet", lambda turn: _duet(pair, seats, workload, turn), pairs)


def _alternating(pair: tuple[Bench, Bench], workload: Workload) -> Way:
    def way(number: int) -> Pair:
        turn = _turn(workload, number)
        if number % 2 == 0:
            return _told(take_sample(pair[0], turn)), _told(take_sample(pair[1], turn))
        second = _told(take_sample(pair[1], turn))
        return _told(take_sample(pair[0], turn)), second

    return way


def _duet(
    pair: tuple[Bench, Bench], seats: tuple[CpuShares, CpuShares], workload: Workload, turn: int
) -> Pair:
    first, second = take_duet(pair, seats, _turn(workload, turn))
    return _told(first), _told(second)


def _told(sample: Sample) -> Figures:
    rate, cpu_us, calibrator_us = sample.value("rate"), sample.value("cpu"), sample.calibrator_us
    usable = sample.valid and bool(rate and cpu_us and calibrator_us)
    cost = (cpu_us or 1.0) / (calibrator_us or 1.0)
    return Figures(rate=rate or 1.0, cpu_us=cpu_us or 1.0, cost=cost, used=usable)


def _spread(name: str, way: Way, pairs: int) -> Spread:
    way(0)  # the first turn warms up
    start_s = time.monotonic()
    pairs_taken = [way(turn) for turn in range(1, pairs + 1)]
    seconds = (time.monotonic() - start_s) / pairs
    usable_pairs = [pair for pair in pairs_taken if pair[0].used and pair[1].used]
    runs = [[pair[side] for pair in usable_pairs] for side in range(2)]

    def mean_cv(figure_of: Callable[[Figures], float]) -> float:
        return statistics.fmean(_cv([figure_of(run) for run in side]) for side in runs)

    return Spread(
        way=name,
        rate=mean_cv(lambda run: run.rate),
        cpu=mean_cv(lambda run: run.cpu_us),
        cost=mean_cv(lambda run: run.cost),
        ratio=_cv([second.cost / first.cost for first, second in usable_pairs]),
        used=sum(run.used for pair in pairs_taken for run in pair) / (2 * len(pairs_taken)),
        seconds=seconds,
    )


def _cv(values: Sequence[float]) -> float:
    """In per cent, on the log scale."""
    return 100 * statistics.stdev(math.log(value) for value in values)


def _turn(workload: Workload, number: int) -> Turn:
    return Turn(campaign_id="bench", number=number, candidates=(), workload=workload)


def deciders(row: str, workload: str, runs: int) -> Mapping[str, MetricNoise]:
    """Every metric in the lab's own turns, so many runs a side, as `doctor --noise` tells it."""
    output = said_by(
        "doctor", "--noise", "--row", row, "--workload", workload, "--runs", str(runs), "--json"
    )
    noises = [MetricNoise.model_validate(document) for document in json.loads(output)["metrics"]]
    return {noise.metric: noise for noise in noises}
