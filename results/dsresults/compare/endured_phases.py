"""How a server bore hours of load: each phase, what failed, and what changed with time. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CPU, LATENCY_P99, MEMORY
from dsharness.model import Latencies, Sample, Value
from dsresults.compare.latency_curves import IN_TABLE, Percentile, latency_curve
from dsresults.compare.load_levels import whole_times
from dsresults.compare.usage_courses import CoursePoint
from dsresults.number_text import counted, significant, whole

FEWEST = 8  # runs of a phase that can say what changes with time
LEVEL = 0.95
DRIFTING = (LATENCY_P99, CPU, MEMORY)


class Drift(Value):
    """By how much a metric rises in an hour of a phase: Theil and Sen's slope, and its interval."""

    metric: str
    unit: str
    per_hour: float
    low: float = Field(description="of the interval at 95 %")
    high: float
    of: float = Field(description="the median of the phase")

    @property
    def seen(self) -> bool:
        """Whether it is more than noise."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        ends = f"{significant(self.low)} to {significant(self.high)}"
        word = "" if self.seen else ", which may be nothing"
        return f"{self.metric} {significant(self.per_hour)} {self.unit} an hour ({ends}){word}"


class EndurancePhase(Value):
    """All runs at one rate that followed each other."""

    share_pct: float = Field(description="of the top rate")
    asked_per_s: float
    runs: int
    unusable: int = Field(description="runs whose figures say nothing")
    why: str = Field(default="", description="why they say nothing")
    operations: int
    failed: int = Field(description="operations with an error")
    mean_us: float | None = None
    percentiles: tuple[Percentile, ...] = ()
    max_us: float | None = None
    cpu_us: float | None = Field(default=None, description="of an operation, the median")
    memory_mib: tuple[float, float] | None = Field(default=None, description="first and last run's")
    drifts: tuple[Drift, ...] = ()
    moments: tuple[EnduranceMoment, ...] = ()

    @property
    def known(self) -> bool:
        return self.runs > self.unusable

    def at(self, percent: float) -> Percentile | None:
        """None where fewer than five operations took longer."""
        return next((each for each in self.percentiles if each.percent == percent), None)


class EnduranceMoment(Value):
    """One run of a phase."""

    started_at: str
    p50_us: float | None
    p99_us: float | None
    cpus_busy: CoursePoint | None
    memory_mib: CoursePoint | None


class Endurance(Value):
    """One row through all phases."""

    row: str
    workload_id: str
    title: str
    capacity_per_s: float
    connections: int
    measured_from: str
    measured_until: str
    phases: tuple[EndurancePhase, ...]

    @property
    def failed(self) -> int:
        return sum(phase.failed for phase in self.phases)

    @property
    def inconclusive(self) -> bool:
        """Whether a phase says nothing, and no operation failed either."""
        return not self.failed and not all(phase.known for phase in self.phases)

    @property
    def answer(self) -> str:
        """The first sentence of every report of it."""
        operations = sum(phase.operations for phase in self.phases)
        if self.failed:
            return f"not endured: {counted(self.failed, 'operation')} of {whole(operations)} failed"
        if self.inconclusive:
            silent = [n for n, phase in enumerate(self.phases, start=1) if not phase.known]
            return f"not known: no run of phase {', '.join(map(str, silent))} can be used"
        return f"endured: none of {whole(operations)} operations failed"


def endured_phase(
    share_pct: float, asked_per_s: float, samples: Sequence[Sample]
) -> EndurancePhase:
    """A run with failed operations is not valid, and counts here all the same."""
    taken = sorted(samples, key=lambda sample: sample.started_at)
    used = [sample for sample in taken if sample.valid]
    wrong = [why for sample in taken for why in (*sample.invalid, *sample.disturbed)]
    timed = [sample for sample in used if sample.latencies]
    curve = latency_curve("", [whole_times(sample) for sample in timed])
    memory = [value for sample in used if (value := sample.value(MEMORY.name)) is not None]
    costs = [value for sample in used if (value := sample.value(CPU.name)) is not None]
    return EndurancePhase(
        share_pct=share_pct,
        asked_per_s=asked_per_s,
        runs=len(taken),
        unusable=len(taken) - len(used),
        why="; ".join(dict.fromkeys(wrong)),
        operations=sum(sample.operations for sample in taken),
        failed=sum(sample.errors for sample in taken),
        mean_us=_mean_us(timed),
        percentiles=tuple(p for p in curve.percentiles if p.percent in IN_TABLE) if curve else (),
        max_us=curve.max_us if curve else None,
        cpu_us=statistics.median(costs) if costs else None,
        memory_mib=(memory[0], memory[-1]) if memory else None,
        drifts=tuple(_drifts(used)),
        moments=tuple(_moment(sample) for sample in used),
    )


def _mean_us(samples: Sequence[Sample]) -> float | None:
    if not samples:
        return None
    return Latencies.merged(each for one in samples for each in one.latencies.values()).mean_us


def _drifts(samples: Sequence[Sample]) -> Iterator[Drift]:
    for metric in DRIFTING:
        read = [(_hours(one), value) for one in samples if (value := one.value(metric.name))]
        if len(read) >= FEWEST:
            yield _drift(metric, [hour for hour, _ in read], [value for _, value in read])


def _drift(metric: Metric, hours: Sequence[float], values: Sequence[float]) -> Drift:
    from scipy.stats import theilslopes  # noqa: PLC0415 - takes a second

    found = theilslopes(values, hours, alpha=LEVEL)
    return Drift(
        metric=metric.label,
        unit=metric.unit,
        per_hour=float(found.slope),
        low=float(found.low_slope),
        high=float(found.high_slope),
        of=statistics.median(values),
    )


def _hours(sample: Sample) -> float:
    return datetime.fromisoformat(sample.started_at).timestamp() / 3600


def _moment(sample: Sample) -> EnduranceMoment:
    times = whole_times(sample) if sample.latencies else None
    usage = sample.usage[0] if sample.usage else None
    memory = [kib / 1024 for kib in usage.memory_kib] if usage else []
    busy_s = (sample.value(CPU.name) or 0.0) * sample.operations / 1e6
    return EnduranceMoment(
        started_at=sample.started_at,
        p50_us=times.at_us(50) if times else None,
        p99_us=sample.value(LATENCY_P99.name),
        cpus_busy=_point([busy_s / sample.duration_s] if sample.duration_s else []),
        memory_mib=_point(memory),
    )


def _point(values: Sequence[float]) -> CoursePoint | None:
    if not values:
        return None
    return CoursePoint(
        at_s=0.0, middle=statistics.median(values), low=min(values), high=max(values)
    )


def endurance_of(
    *,
    row: str,
    workload_id: str,
    title: str,
    capacity_per_s: float,
    connections: int,
    phases: Sequence[EndurancePhase],
) -> Endurance:
    """The whole of it, with the moments of its first and last run."""
    begun = [moment.started_at for phase in phases for moment in phase.moments]
    return Endurance(
        row=row,
        workload_id=workload_id,
        title=title,
        capacity_per_s=capacity_per_s,
        connections=connections,
        measured_from=min(begun, default=""),
        measured_until=max(begun, default=""),
        phases=tuple(phases),
    )
