"""What rows answer in a closed loop, and loads that are scheduled at a share of it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dsharness.errors import InconclusiveError, UsageError
from dsharness.measure.gate import is_fed
from dsharness.measure.metrics import LATENCY, RATE, find_metric, refuse_unfit
from dsharness.model import Sample, Workload
from dsresults.compare.load_levels import refusal
from dsresults.number_text import significant

CAPACITY_RUNS = 5  # always, so that more runs of what follows keep its rates
MOST_TIMES = 2.0  # of a row's capacity: then a run is twice as long as its schedule
CONNECTIONS = 4.0  # times what Little's law asks: else operations wait in the load


Counts = Callable[[Sample], bool]  # whether a run is one of those that were asked for


def is_valid(sample: Sample) -> bool:
    return sample.valid


class Runs(Protocol):
    """Rows that are prepared, as far as they can be."""

    @property
    def metric(self) -> str: ...

    @property
    def failures(self) -> Mapping[str, str]:
        """Rows that could not be prepared, and why."""
        ...

    def note(self, row: str, what: str) -> None:
        """Tell who watches."""
        ...

    def valid(
        self,
        load: Workload,
        rows: Sequence[str],
        number: int,
        later: int = 0,
        *,
        counts: Counts = is_valid,
    ) -> list[Sample]:
        """All samples of a load, when each row has so many runs that count or fails again."""
        ...


def rounded_rate(rate: float) -> float:
    return float(f"{rate:.3g}")


def closed_loop(workload: Workload) -> Workload:
    """The same load as fast as answers come; UsageError for one that has no such form."""
    if not workload.can_be_scheduled:
        raise UsageError(
            f"workload {workload.named!r} cannot have levels: {workload.tool} begins no operation "
            "by a schedule of the lab's",
            hint="take one with a schedule, such as search-as-user; docs/workloads.md lists them",
        )
    paced = {"scheduled": None, "scheduled_pct": None, "pauses_ms": ()}
    loop = {name: value for name, value in paced.items() if name in type(workload).model_fields}
    closed = workload.model_copy(update={"id": f"{workload.id[:56]}-closed", **loop})
    for parameter, allowed in closed.contradictions():
        raise UsageError(
            f"workload {workload.named!r} cannot have levels: without a schedule {parameter} is "
            f"refused: {allowed}",
            hint="take one whose operations take time, such as search-as-user",
        )
    return closed


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What a row answers in a closed loop."""

    per_s: float
    latency_s: float
    bound: bool  # by the load

    @classmethod
    def of(cls, row: str, samples: Sequence[Sample]) -> Capacity:
        """From the first runs that count; InconclusiveError where there is none."""
        valid = list(filter(is_fed, samples))[:CAPACITY_RUNS]
        if not valid:
            why = refusal(samples[-1]) if samples else "it was not measured"
            where = f" ({samples[-1].log})" if samples else ""
            raise InconclusiveError(
                f"{row}: its capacity is not known, no closed loop run can be used: {why}{where}",
                hint="remove the cause; the same command continues from the stored runs",
            )
        return cls(
            per_s=statistics.median(sample.value(RATE.name) or 0.0 for sample in valid),
            latency_s=statistics.median(sample.value(LATENCY.name) or 0.0 for sample in valid)
            / 1e6,
            bound=2 * sum(sample.load_bound for sample in valid) > len(valid),
        )

    def answers(self, rate: float) -> bool:
        """Whether a run at that rate can end in time."""
        return rate <= MOST_TIMES * self.per_s

    def connections(self, rate: float) -> int:
        """So many that an operation hardly ever waits for a free one."""
        return math.ceil(CONNECTIONS * min(rate, MOST_TIMES * self.per_s) * self.latency_s)


def capacities(rows: Sequence[str], measured: Sequence[Sample]) -> dict[str, Capacity]:
    """Of each row by its own samples."""
    return {
        row: Capacity.of(row, [sample for sample in measured if sample.candidate_id == row])
        for row in rows
    }


def connections_for(load: Workload, rate: float, capacities: Iterable[Capacity]) -> int:
    """As many as the row needs that needs most, and no fewer than the load has."""
    return max(load.threads, *(capacity.connections(rate) for capacity in capacities))


def without_shares(workloads: Sequence[Workload], metric: str) -> tuple[Workload, ...]:
    """The same, in a closed loop where a load is scheduled at a share of what that answers."""
    refuse_unfit(find_metric(metric), workloads)
    return tuple(
        closed_loop(workload) if workload.share_pct else workload for workload in workloads
    )


def at_shares(
    workloads: Sequence[Workload], ends: Sequence[str], runs: Runs
) -> tuple[Workload, ...]:
    """The same with rates: shares of what the slowest of these ends answers, which is measured.

    What is stored counts, so a run that continues has the same rates.
    """
    return tuple(
        _at_share(workload, workload.share_pct, tuple(ends), runs)
        if workload.share_pct
        else workload
        for workload in workloads
    )


def _at_share(load: Workload, pct: float, ends: tuple[str, ...], runs: Runs) -> Workload:
    ready = tuple(end for end in ends if end not in runs.failures) or ends
    measured = runs.valid(closed_loop(load), ready, CAPACITY_RUNS, counts=is_fed)
    capacity = capacities(ready, measured)
    slowest = min(ready, key=lambda end: capacity[end].per_s)
    per_s = capacity[slowest].per_s
    if not per_s:
        raise UsageError(
            f"workload {load.named!r} is scheduled at {pct:g} % of what rows answer, but by "
            f"{runs.metric} nobody counts how many operations they answer",
            hint="write `scheduled:` with operations a second",
        )
    rate = rounded_rate(per_s * pct / 100)
    runs.note(
        slowest,
        f"answers {significant(per_s)}/s of {load.id} in a closed loop; {pct:g} % of that is "
        f"{significant(rate)}/s",
    )
    connections = connections_for(load, rate, capacity.values())
    return load.model_copy(
        update={"scheduled": rate, "scheduled_pct": None, "threads": connections}
    )
