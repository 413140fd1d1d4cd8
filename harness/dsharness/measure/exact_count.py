"""What an operation takes, counted instead of timed: the same on a busy machine as on a quiet one.

The difference of two runs, one twice as long: what a run costs apart from its operations cancels
out. This is done until two such differences agree. Threads that work as much without operations
are the server's own and count nothing. One connection asks, so that nothing waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import ClassVar, Protocol, TypeVar

from dsharness.errors import CandidateError, WorkloadError
from dsharness.loads import LoadReport, Operations
from dsharness.measure.gate import Gate, RunEvidence, count_objections
from dsharness.measure.metric import Metric
from dsharness.measure.sample import Bench, execute_load, time_now, write_files
from dsharness.model import Measurement, Sample, Turn, Workload

IDLE_S = 6.0
PAIR_S = 12.0  # that a short and a long run should take together
FEWEST = 2  # operations of the short run
FEW = 16  # operations that tell how long one takes, unless a single one is enough for that
MOST_PAIRS = 6
APART = 0.01  # calls of an operation: counts near zero that differ by no more agree
LIMIT_S = 300.0

T = TypeVar("T")
Behind = tuple[str, ...]  # the words of a program that starts what is counted


@dataclass(frozen=True, kw_only=True)
class CountedRun:
    """So many of each thread in so long."""

    threads: Mapping[int, int]
    seconds: float

    @property
    def total(self) -> int:
        return sum(self.threads.values())


Counts = Mapping[Metric, CountedRun]


class Counter(Protocol):
    """What counts in a server while something is done; it may slow the server down."""

    kinds: ClassVar[tuple[Metric, ...]]  # what it counts, the largest first
    busier: ClassVar[float]  # times, under load, than without: then a thread works for operations
    least: ClassVar[float]  # of the first kind, in a short run: fewer drown in other work
    most: ClassVar[int]  # operations of the short run
    within: ClassVar[str]  # "under valgrind"

    def close(self, kind: Metric) -> float:
        """Return two differences that are so close are of the operations alone."""
        ...

    def begin(self, bench: Bench, workload: Workload) -> None:
        """Get a server ready to be counted."""
        ...

    def counted(self, bench: Bench, work: Callable[[Behind], T]) -> tuple[T, Counts]:
        """Do it, and the counts meanwhile."""
        ...

    def rest(self, behind: Behind) -> None:
        """Let the server be without any operation for IDLE_S."""
        ...


def take_count(bench: Bench, turn: Turn, counter: Counter, gate: Gate = count_objections) -> Sample:
    """Return a sample that has only the metrics that are counted."""
    alone = turn.workload.model_copy(update={"threads": 1})
    write_files(bench, alone, turn.number)
    started_at = time_now()
    invalid: tuple[str, ...] = ()
    metrics: dict[str, Measurement] = {}
    operations = 0
    try:
        values, operations = _count(counter, bench, alone, gate)
        metrics = {kind.name: kind.measured(value) for kind, value in values.items()}
    except CandidateError as error:
        invalid = (error.message.splitlines()[0],)
    golden = bench.instance.own.golden
    return Sample(
        id=turn.sample_id(golden.image.candidate_id),
        campaign_id=turn.campaign_id,
        candidate_id=golden.image.candidate_id,
        settings_id=golden.seed.settings.id,
        workload_id=turn.workload.id,
        image_key=golden.image.key,
        turn=turn.number,
        attempt=turn.attempt,
        started_at=started_at,
        start=bench.start,
        duration_s=0.0,
        operations=operations,
        metrics=metrics,
        machine=bench.machine,
        calibrator_us=None,
        steal_pct=0.0,
        errors=len(invalid),
        per_second=(),
        invalid=invalid,
        workload=turn.workload,
        bench=bench.facts,
        log=str(bench.instance.container.log),
    )


def _count(
    counter: Counter, bench: Bench, alone: Workload, gate: Gate
) -> tuple[Mapping[Metric, float], int]:
    """Return how many of each kind an operation takes, and the operations counted."""
    counter.begin(bench, alone)
    count = short_run(counter, bench, alone, gate)
    idle = counter.counted(bench, counter.rest)[1]
    differences: dict[Metric, list[float]] = {kind: [] for kind in counter.kinds}
    agreed_values: dict[Metric, float | None] = dict.fromkeys(counter.kinds)
    pairs = 0
    while pairs < MOST_PAIRS and None in agreed_values.values():
        pairs += 1
        short, long = (_loaded(counter, bench, alone, size, gate) for size in (count, 2 * count))
        for kind, kind_differences in differences.items():
            more = difference(short[kind], long[kind], idle[kind], counter.busier)
            kind_differences.append(more / count)
            agreed_values[kind] = agreed(
                kind_differences, counter.close(kind), APART if kind.floor else 0.0
            )
    values = {
        kind: in_the_middle(differences[kind]) if value is None else value
        for kind, value in agreed_values.items()
    }
    return values, 3 * count * pairs


def in_the_middle(differences: Sequence[float]) -> float:
    """Return what is told where no two agree: that such samples vary is for the search to see."""
    return max(0.0, median(differences))


def short_run(counter: Counter, bench: Bench, alone: Workload, gate: Gate) -> int:
    """Return how many operations; the first ones also warm the server up."""
    most = counter.kinds[0]
    run, count = _loaded(counter, bench, alone, 1, gate)[most], 1
    if run.total < counter.least:
        run, count = _loaded(counter, bench, alone, FEW, gate)[most], FEW
    return operations_of(run.seconds / count, run.total / count, counter)


def difference(short: CountedRun, long: CountedRun, idle: CountedRun, busier: float) -> int:
    """Return what the longer run took more, in threads that work for the operations."""
    return sum(
        count - short.threads.get(thread, 0)
        for thread, count in long.threads.items()
        if count * idle.seconds > busier * idle.threads.get(thread, 0) * long.seconds
    )


def agreed(differences: Sequence[float], close: float, floor: float = 0.0) -> float | None:
    """Return the mean of the two that are closest, if they are close; none below ``floor`` matters.

    A thread also does more than its operations once in a while: it starts, or asks for names for
    the first time. A difference that holds such work has no other like it.
    """
    pairs = list(pairwise(sorted(differences)))
    if not pairs:
        return None
    low, high = min(pairs, key=lambda pair: pair[1] - pair[0])
    if low + floor <= 0 or high > low * (1 + close) + floor:
        return None
    return max(0.0, (low + high) / 2)


def operations_of(operation_s: float, counted: float, counter: Counter) -> int:
    """Return the operations of the shorter run, if one takes so long and counts so much."""
    in_time = PAIR_S / 3 / max(operation_s, 1e-3)
    return round(min(counter.most, max(FEWEST, in_time, counter.least / max(counted, 1.0))))


def _loaded(
    counter: Counter, bench: Bench, workload: Workload, operations: int, gate: Gate
) -> Counts:
    load = counted_load(bench, workload, operations, gate, counter.within)
    return counter.counted(bench, load)[1]


def counted_load(
    bench: Bench, workload: Workload, operations: int, gate: Gate, within: str
) -> Callable[[Behind], LoadReport]:
    """Return a load of so many operations; WorkloadError if they are not what was asked for."""
    size = Operations(per_thread=operations, limit_s=LIMIT_S)

    def work(behind: Behind) -> LoadReport:
        report = execute_load(bench, workload, size, behind)
        for why in gate(RunEvidence(operations=operations, threads=1, report=report)):
            raise WorkloadError(f"{workload.id} {within}: {why}", log=bench.load.log)
        return report

    return work
