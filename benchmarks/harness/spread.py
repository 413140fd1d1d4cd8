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
from dsbisect.noise_study import MetricNoise
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
    loads = [each for each in matrix.workloads if each.tool == "ldclt"]
    seed = Seed(content=largest(each.content for each in loads), settings=Settings(id="default"))
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
    for at in pair:
        at.pace.clear()
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
    known = sample.valid and bool(rate and cpu_us and calibrator_us)
    cost = (cpu_us or 1.0) / (calibrator_us or 1.0)
    return Figures(rate=rate or 1.0, cpu_us=cpu_us or 1.0, cost=cost, used=known)


def _spread(name: str, way: Way, pairs: int) -> Spread:
    way(0)  # the first turn warms up
    begun = time.monotonic()
    taken = [way(turn) for turn in range(1, pairs + 1)]
    seconds = (time.monotonic() - begun) / pairs
    used = [pair for pair in taken if pair[0].used and pair[1].used]
    runs = [[each[at] for each in used] for at in range(2)]

    def both(of: Callable[[Figures], float]) -> float:
        return statistics.fmean(_cv([of(run) for run in side]) for side in runs)

    return Spread(
        way=name,
        rate=both(lambda run: run.rate),
        cpu=both(lambda run: run.cpu_us),
        cost=both(lambda run: run.cost),
        ratio=_cv([second.cost / first.cost for first, second in used]),
        used=sum(run.used for pair in taken for run in pair) / (2 * len(taken)),
        seconds=seconds,
    )


def _cv(values: Sequence[float]) -> float:
    """In per cent, on the log scale."""
    return 100 * statistics.stdev(math.log(value) for value in values)


def _turn(workload: Workload, number: int) -> Turn:
    return Turn(campaign_id="bench", number=number, candidates=(), workload=workload)


def deciders(row: str, workload: str, runs: int) -> Mapping[str, MetricNoise]:
    """Every metric in the lab's own turns, so many runs a side, as `doctor --noise` tells it."""
    said = said_by(
        "doctor", "--noise", "--row", row, "--workload", workload, "--runs", str(runs), "--json"
    )
    found = [MetricNoise.model_validate(each) for each in json.loads(said)["metrics"]]
    return {each.metric: each for each in found}
