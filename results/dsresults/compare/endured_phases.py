"""How a server bore hours of load: each phase, what changed with time, and its page. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from pydantic import Field

from dsharness.measure.gate import is_fed, starved
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CPU, LATENCY_P99, MEMORY
from dsharness.model import Latencies, Sample, Value
from dsresults.compare.latency_curves import (
    FEWEST_SLOWER,
    IN_TABLE,
    Percentile,
    latency_curve,
    percentile_cell,
)
from dsresults.compare.load_levels import whole_times
from dsresults.compare.operation_parts import PERCENTS, OperationParts, RequestTimes, parts_tables
from dsresults.compare.usage_courses import CoursePoint, course_chart
from dsresults.number_text import counted, measured_between, significant, whole
from dsresults.page.chart import Chart
from dsresults.page.page import (
    UNKNOWN,
    Card,
    Column,
    Content,
    Grid,
    Page,
    Table,
    code,
    note,
    or_dash,
    quiet,
)

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
    parts: OperationParts = Field(
        default=OperationParts(), exclude_if=lambda parts: parts == OperationParts()
    )
    moments: tuple[EnduranceMoment, ...] = ()

    @property
    def known(self) -> bool:
        return self.runs > self.unusable

    def at(self, percent: float) -> Percentile | None:
        """None where fewer than five operations took longer."""
        return next(
            (percentile for percentile in self.percentiles if percentile.percent == percent), None
        )


class EnduranceMoment(Value):
    """One run of a phase."""

    started_at: str
    p50_us: float | None
    p99_us: float | None
    cpus_busy: CoursePoint | None
    memory_mib: CoursePoint | None
    requests: tuple[RequestTimes, ...] = Field(
        default=(), exclude_if=lambda requests: not requests, description="of each operation"
    )

    def of_request(self, name: str, percent: float) -> float | None:
        """The time of a request; None where fewer than five of them took longer."""
        of_name = (request for request in self.requests if request.name == name)
        return next((request.percentiles_us.get(percent) for request in of_name), None)


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

    def page(self) -> Page:
        return Page(
            title=f"{self.row} under {self.workload_id} for a long time",
            heading=(self.row, " under ", code(self.workload_id), " for a long time"),
            about=(self.title, measured_between(self.measured_from, self.measured_until)),
            answer=[Card(headline=self.answer, parts=[*_remarks(self.phases)])],
            parts=(
                Grid(parts=endurance_charts(self), kind="latencies"),
                _table(self.phases),
                *parts_tables(
                    "top %", [(f"{phase.share_pct:g}", phase.parts) for phase in self.phases]
                ),
                note(
                    f"Each phase is an open loop with {self.connections} connections, in runs that "
                    "follow each other on one server; as answers come it serves "
                    f"{significant(self.capacity_per_s)} a second. Times count from when an "
                    "operation should have begun; a dash stands where fewer than "
                    f"{FEWEST_SLOWER} operations took longer. What rises or falls in an hour is "
                    "the slope of Theil and Sen over the runs of a phase, with its interval at "
                    "95 %; a phase of few runs has none."
                ),
            ),
        )


def endured_phase(
    share_pct: float, asked_per_s: float, samples: Sequence[Sample]
) -> EndurancePhase:
    """A run with failed operations is not valid, and counts here all the same."""
    ordered = sorted(samples, key=lambda sample: sample.started_at)
    usable = list(filter(is_fed, ordered))
    wrong = [
        why
        for sample in ordered
        for why in (*sample.invalid, *sample.disturbed, starved(sample))
        if why
    ]
    timed = [sample for sample in usable if sample.latencies]
    curve = latency_curve("", [whole_times(sample) for sample in timed])
    memory = [value for sample in usable if (value := sample.value(MEMORY.name)) is not None]
    costs = [value for sample in usable if (value := sample.value(CPU.name)) is not None]
    return EndurancePhase(
        share_pct=share_pct,
        asked_per_s=asked_per_s,
        runs=len(ordered),
        unusable=len(ordered) - len(usable),
        why="; ".join(dict.fromkeys(wrong)),
        operations=sum(sample.operations for sample in ordered),
        failed=sum(sample.errors for sample in ordered),
        mean_us=_mean_us(timed),
        percentiles=tuple(p for p in curve.percentiles if p.percent in IN_TABLE) if curve else (),
        max_us=curve.max_us if curve else None,
        cpu_us=statistics.median(costs) if costs else None,
        memory_mib=(memory[0], memory[-1]) if memory else None,
        drifts=tuple(_drifts(usable)),
        parts=OperationParts.of(usable),
        moments=tuple(_moment(sample) for sample in usable),
    )


def _mean_us(samples: Sequence[Sample]) -> float | None:
    if not samples:
        return None
    return Latencies.merged(
        latencies for sample in samples for latencies in sample.latencies.values()
    ).mean_us


def _drifts(samples: Sequence[Sample]) -> Iterator[Drift]:
    for metric in DRIFTING:
        read = [
            (_hours(sample), value) for sample in samples if (value := sample.value(metric.name))
        ]
        if len(read) >= FEWEST:
            yield _drift(metric, [hour for hour, _ in read], [value for _, value in read])


def _drift(metric: Metric, hours: Sequence[float], values: Sequence[float]) -> Drift:
    from scipy.stats import theilslopes  # noqa: PLC0415 - takes a second

    slope = theilslopes(values, hours, alpha=LEVEL)
    return Drift(
        metric=metric.label,
        unit=metric.unit,
        per_hour=float(slope.slope),
        low=float(slope.low_slope),
        high=float(slope.high_slope),
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
        requests=OperationParts.of((sample,)).requests,
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
    begin_times = [moment.started_at for phase in phases for moment in phase.moments]
    return Endurance(
        row=row,
        workload_id=workload_id,
        title=title,
        capacity_per_s=capacity_per_s,
        connections=connections,
        measured_from=min(begin_times, default=""),
        measured_until=max(begin_times, default=""),
        phases=tuple(phases),
    )


def _remarks(phases: Sequence[EndurancePhase]) -> Iterator[str]:
    """Yield what changed with time, and which runs were not used."""
    for number, phase in enumerate(phases, start=1):
        yield from (f"phase {number}: {drift}" for drift in phase.drifts if drift.seen)
        if phase.why:
            yield f"phase {number}: {phase.unusable} of {phase.runs} runs not used: {phase.why}"


def _table(phases: Sequence[EndurancePhase]) -> Table:
    return Table(
        kind="figures-of-levels",
        caption="Operations a second, milliseconds from when an operation was due, CPU time of an "
        "operation in \u00b5s, memory of the first and last run in MiB",
        columns=(
            "top %",
            "asked",
            "runs",
            "operations",
            "failed",
            "mean",
            *(f"p{percent:g}" for percent in IN_TABLE),
            "max",
            "CPU",
            "memory",
            Column(title=quiet("in an hour")),
        ),
        rows=[_line(phase) for phase in phases],
    )


def _line(phase: EndurancePhase) -> tuple[Content, ...]:
    memory = phase.memory_mib
    drifts = [str(drift) for drift in phase.drifts if drift.seen]
    drift_text = "; ".join(drifts) or ("nothing seen" if phase.drifts else UNKNOWN)
    return (
        f"{phase.share_pct:g}",
        significant(phase.asked_per_s),
        str(phase.runs),
        whole(phase.operations),
        whole(phase.failed),
        or_dash(phase.mean_us and phase.mean_us / 1000),
        *(percentile_cell(phase.at(percent)) for percent in IN_TABLE),
        or_dash(phase.max_us and phase.max_us / 1000),
        or_dash(phase.cpu_us),
        " to ".join(map(significant, memory)) if memory else UNKNOWN,
        quiet(drift_text),
    )


FEWEST_MOMENTS = 2  # that make a line


def endurance_charts(endurance: Endurance) -> tuple[Chart, ...]:
    """Return latency, CPUs and memory over the whole time, as far as they are known."""
    return tuple(_charts(endurance))


def _charts(endurance: Endurance) -> Iterator[Chart]:
    moments = [moment for phase in endurance.phases for moment in phase.moments]
    if len(moments) < FEWEST_MOMENTS:
        return
    begun_s = _at_s(moments[0])
    marks = {
        _at_s(phase.moments[0]) - begun_s: f"{phase.share_pct:g}"
        for phase in endurance.phases
        if phase.moments
    }

    def course(read: Callable[[EnduranceMoment], CoursePoint | None]) -> list[CoursePoint]:
        return [
            point.model_copy(update={"at_s": _at_s(moment) - begun_s})
            for moment in moments
            if (point := read(moment))
        ]

    def of_request(name: str, percent: float) -> list[CoursePoint]:
        return course(lambda moment: _ms(moment.of_request(name, percent)))

    names = dict.fromkeys(request.name for moment in moments for request in moment.requests)
    latency = {"p50": course(lambda m: _ms(m.p50_us)), "p99": course(lambda m: _ms(m.p99_us))}
    for title, unit, courses in (
        ("latency of each run", " ms", latency),
        *(
            (f"p{percent:g} by request", " ms", {name: of_request(name, percent) for name in names})
            for percent in PERCENTS
        ),
        ("CPUs busy", "", {endurance.row: course(lambda m: m.cpus_busy)}),
        ("memory", " MiB", {endurance.row: course(lambda m: m.memory_mib)}),
    ):
        drawn_courses = {
            name: points for name, points in courses.items() if len(points) >= FEWEST_MOMENTS
        }
        if drawn_courses:
            yield course_chart(
                endurance.workload_id,
                title,
                drawn_courses,
                unit=unit,
                marks=marks,
                across_title="per cent of the top rate, from where a phase begins",
            )


def _at_s(moment: EnduranceMoment) -> float:
    return datetime.fromisoformat(moment.started_at).timestamp()


def _ms(time_us: float | None) -> CoursePoint | None:
    return (
        None
        if time_us is None
        else CoursePoint(at_s=0, middle=time_us / 1e3, low=time_us / 1e3, high=time_us / 1e3)
    )
