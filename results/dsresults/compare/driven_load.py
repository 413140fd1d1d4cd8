"""What the workers of one load say together: percentiles, errors, and whether they were the limit.

All of it is from the workers' own histograms, which merge without loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum

from pydantic import Field

from dsharness.loads import LiveLoad, LoadReport
from dsharness.loads.load_driver import NOW, LiveSeconds
from dsharness.measure.gate import load_bound
from dsharness.model import Latencies, Value
from dsresults.number_text import counted, milliseconds, significant, whole

STOPPED = "stopped from outside"  # the last line of a worker that was ended on purpose
PERCENTILES = (50.0, 90.0, 99.0, 99.9)
MOST_STARVED = 0.1  # of a second that a worker wants a CPU and has none
MOST_BOUND = 0.1  # of its seconds may be short of CPU: with more, the figures are the load's own
LAST_LINES = 3
KEPT = 0.98  # of what was asked for: then the rate was kept


class WorkerEnd(StrEnum):
    """How a worker ended."""

    WHOLE = "whole"
    STOPPED = "stopped"
    DIED = "died"


class WorkerFigures(Value):
    """What one worker did, and how much more it could have done."""

    name: str
    end: WorkerEnd
    seconds: float
    operations: int
    errors: dict[str, int]
    cpu_pct: float = Field(description="of a CPU that its only thread used")
    waited_pct: float = Field(description="of its time in which it had work and got no CPU")
    ceiling_per_s: float | None = Field(
        description="what it could make with a whole CPU, by what an operation cost it"
    )
    bound_s: int = Field(description="seconds in which it had too little CPU")
    objections: tuple[str, ...] = Field(description="why its figures are not the server's")
    log: str = Field(description="all that it said")

    @property
    def rate_per_s(self) -> float:
        return self.operations / self.seconds if self.seconds else 0.0


class KindFigures(Value):
    """How long the operations of one kind took."""

    kind: str
    operations: int
    percentiles_us: dict[str, float]
    max_us: float
    latencies: Latencies


class DrivenLoad(Value):
    """A load by several workers, and what came of it."""

    target: str
    title: str
    asked_per_s: float | None = Field(description="of all workers; null: as fast as answers came")
    seconds: float
    operations: int
    errors: dict[str, int]
    kinds: tuple[KindFigures, ...]
    workers: tuple[WorkerFigures, ...]
    server_cpu_us: float | None = Field(
        description="of the server for each operation, everything it did meanwhile included"
    )
    objections: tuple[str, ...] = Field(description="why it says nothing of the server")
    interrupted: bool = Field(default=False, description="by a Ctrl-C, after so long")

    @property
    def rate_per_s(self) -> float:
        return sum(worker.rate_per_s for worker in self.workers)


def is_whole(report: LoadReport, asked_s: float) -> bool:
    """Whether a worker went on to the end of its time: one without connections ends before."""
    return report.verified and (report.active_s or 0.0) >= KEPT * asked_s


def worker_heard(
    load: LiveLoad, name: str, text: str, log: str, *, asked_s: float, stopped: bool = False
) -> tuple[WorkerFigures, LoadReport]:
    """A worker's figures from all that it said; up to its last whole second if it did not end."""
    seconds = LiveSeconds(load)
    reports = [second_report for line in text.splitlines() if (second_report := seconds.hear(line))]
    last = load.parse(text)
    report = last if last.verified else replace(LoadReport.joined(reports), verified=True)
    lines = [line for line in text.splitlines() if not line.startswith(NOW)]
    end = WorkerEnd.DIED
    if is_whole(last, asked_s):
        end = WorkerEnd.WHOLE
    elif stopped or (lines and lines[-1] == STOPPED):
        end = WorkerEnd.STOPPED
    active_s, cpu_us = report.active_s or 0.0, report.client_cpu_us or 0.0
    bound_s = sum(is_bound(report) for report in reports)
    figures = WorkerFigures(
        name=name,
        end=end,
        seconds=active_s,
        operations=report.total or 0,
        errors=dict(report.errors),
        cpu_pct=_percent(cpu_us, active_s),
        waited_pct=_percent(report.starved_us, active_s),
        ceiling_per_s=1e6 * report.total / cpu_us if report.total and cpu_us else None,
        bound_s=bound_s,
        objections=tuple(_objections(load, name, report, end, lines, log, bound_s, len(reports))),
        log=log,
    )
    return figures, report


def is_bound(second: LoadReport) -> bool:
    """Whether it had no CPU left, or waited for one so long that answers seem late for that."""
    active_s = second.active_s or 0.0
    waited = second.starved_us > MOST_STARVED * active_s * 1e6
    return waited or load_bound(second.client_cpu_us, active_s, 1, second.starved_us)


def _percent(time_us: float, of_s: float) -> float:
    return time_us / of_s / 1e4 if of_s else 0.0


def _objections(
    load: LiveLoad,
    name: str,
    report: LoadReport,
    end: WorkerEnd,
    lines: Sequence[str],
    log: str,
    bound_s: int,
    of_s: int,
) -> Iterator[str]:
    if end is WorkerEnd.DIED:
        yield f"{name} ended before its time: {last_words(lines)} ({log})"
    if bound_s > MOST_BOUND * of_s:
        yield f"the load was the limit: {name} had too little CPU in {bound_s} of {of_s} s"
    for why in load.objections(report):
        yield f"{name}: {why}"


def last_words(lines: Sequence[str]) -> str:
    """What a worker said of its end: its own reason, if it gave one."""
    words = [line.strip() for line in lines if line.strip()]
    own = [line for line in words if line.startswith(("failed ", "error "))]
    return "; ".join((own or words)[-LAST_LINES:]) or "it said nothing"


def driven_load(
    target: str,
    title: str,
    asked_per_s: float | None,
    heard_workers: Sequence[tuple[WorkerFigures, LoadReport]],
    server_cpu_us: float | None,
    objections: Sequence[str] = (),
    *,
    interrupted: bool = False,
) -> DrivenLoad:
    """The workers together; ``objections`` are what was seen elsewhere."""
    workers = tuple(figures for figures, _ in heard_workers)
    joined = LoadReport.joined([report for _, report in heard_workers])
    errors = Counter[str]()
    for worker in workers:
        errors.update(worker.errors)
    operations = joined.total or 0
    why = [*objections, *(objection for worker in workers for objection in worker.objections)]
    if not operations:
        why.append("no operation was answered")
    return DrivenLoad(
        target=target,
        title=title,
        asked_per_s=asked_per_s,
        seconds=max((worker.seconds for worker in workers), default=0.0),
        operations=operations,
        errors=dict(errors),
        kinds=tuple(kind_figures(kind, latencies) for kind, latencies in joined.latencies.items()),
        workers=workers,
        server_cpu_us=server_cpu_us / operations if server_cpu_us and operations else None,
        objections=tuple(dict.fromkeys(why)),
        interrupted=interrupted,
    )


def kind_figures(kind: str, latencies: Latencies) -> KindFigures:
    """How long the operations of a kind took, by their histogram."""
    return KindFigures(
        kind=kind,
        operations=latencies.count,
        percentiles_us={
            f"{percentile:g}": latencies.at_us(percentile) for percentile in PERCENTILES
        },
        max_us=latencies.at_us(100),
        latencies=latencies,
    )


def told_load(load: DrivenLoad) -> Iterator[str]:
    """The load as text, a line at a time."""
    noun = counted(len(load.workers), "worker")
    yield f"{load.target}, {load.title}: {noun}, {load.seconds:.1f} s"
    asked_rate = f" of {significant(load.asked_per_s)} asked for" if load.asked_per_s else ""
    cost = (
        f"; {milliseconds(load.server_cpu_us)} of the server's CPU each"
        if load.server_cpu_us
        else ""
    )
    yield f"{whole(load.operations)} operations, {significant(load.rate_per_s)}/s{asked_rate}{cost}"
    for kind in load.kinds:
        percentiles = (
            f"p{name} {milliseconds(time_us)}" for name, time_us in kind.percentiles_us.items()
        )
        yield f"  {kind.kind}: {', '.join((*percentiles, f'max {milliseconds(kind.max_us)}'))}"
    for words, count in load.errors.items():
        yield f"  failed {whole(count)} times: {words}"
    for worker in load.workers:
        yield f"  {_told_worker(worker)}"
    for why in load.objections:
        yield f"inconclusive: {why}"
    sound = not load.objections and not load.errors
    if sound and load.asked_per_s and load.rate_per_s < KEPT * load.asked_per_s:
        yield (
            "the workers had CPU left: the server, or too few connections (--connections), "
            "was the limit"
        )


def _told_worker(worker: WorkerFigures) -> str:
    free_pct = max(0.0, 100 - worker.cpu_pct - worker.waited_pct)
    ceiling = (
        f", with a whole CPU it could make {significant(worker.ceiling_per_s)}/s"
        if worker.ceiling_per_s
        else ""
    )
    end = f" ({worker.end})" if worker.end is not WorkerEnd.WHOLE else ""
    return (
        f"{worker.name}{end}: {significant(worker.rate_per_s)}/s, used {worker.cpu_pct:.0f} % of "
        f"a CPU, waited for it {worker.waited_pct:.0f} %, {free_pct:.0f} % left{ceiling}"
    )
