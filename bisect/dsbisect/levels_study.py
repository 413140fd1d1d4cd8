"""Rows under rising load: their capacity first, then runs by a schedule at shares of it.

A level is a workload of its own, with a campaign of its own; the levels take turns. What is stored
counts: the same request goes on where it was interrupted.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError, UsageError
from dsharness.measure.metrics import LATENCY, LATENCY_P99, RATE
from dsharness.model import LdaploadWorkload, Sample, Workload
from dslab.watcher import Watcher
from dsresults.compare.load_levels import LoadLevel, LoadLevels, RowLevels, level_of
from dsresults.number_text import significant
from dsresults.store import Store

SHARES_PCT = (25.0, 50.0, 75.0, 90.0, 100.0, 110.0)  # of the capacity
CAPACITY_RUNS = 5  # always, so that more runs of the levels keep their rates
MOST_TIMES = 2.0  # of a row's capacity: then a run is twice as long as its schedule
CONNECTIONS = 4.0  # times what Little's law asks: else operations wait in the load
FEWEST = 300  # operations of a run ...
LONGEST_S = 30.0  # ... unless they take longer


@dataclass(frozen=True, kw_only=True)
class LevelsRequest(RowsAsked):
    """Which rows, under how much load."""

    rows: tuple[str, ...]
    shares_pct: tuple[float, ...] = SHARES_PCT
    rates: tuple[float, ...] = ()  # instead of shares
    runs: int = 5
    metric: str = LATENCY_P99.name

    @property
    def load(self) -> LdaploadWorkload:
        return closed_loop(self.workloads[0])

    def rates_for(self, capacity_per_s: float) -> tuple[float, ...]:
        """The rates of all levels, the lowest first."""
        shares = (capacity_per_s * share / 100 for share in self.shares_pct)
        return tuple(sorted({rounded_rate(rate) for rate in self.rates or shares}))


def rounded_rate(rate: float) -> float:
    return float(f"{rate:.3g}")


def closed_loop(workload: Workload) -> LdaploadWorkload:
    """The same load as fast as answers come; UsageError for one that has no such form."""
    if not isinstance(workload, LdaploadWorkload):
        raise UsageError(
            f"workload {workload.named!r} cannot have levels: {workload.tool} begins no operation "
            "by a schedule of the lab's",
            hint="take one with `tool: ldapload`, such as search-as-user; docs/workloads.md lists "
            "them",
        )
    loop = {"id": f"{workload.id[:56]}-closed", "scheduled": None, "pauses_ms": ()}
    closed = workload.model_copy(update=loop)
    for parameter, allowed in closed.contradictions():
        raise UsageError(
            f"workload {workload.named!r} cannot have levels: without a schedule {parameter} is "
            f"refused: {allowed}",
            hint="take one whose operations take time, such as search-as-user",
        )
    return closed


def at_rate(load: LdaploadWorkload, rate: float, connections: int) -> LdaploadWorkload:
    """The load of one level."""
    return load.model_copy(
        update={
            "id": f"{load.id.removesuffix('-closed')[:52]}-at-{rate:g}",
            "file": None,
            "scheduled": rate,
            "threads": connections,
            "duration_s": min(LONGEST_S, max(load.duration_s, FEWEST / rate)),
        }
    )


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """What a row answers in a closed loop."""

    per_s: float
    latency_s: float
    bound: bool  # by the load

    @classmethod
    def of(cls, row: str, samples: Sequence[Sample]) -> Capacity:
        """From the first valid runs; InconclusiveError where there is none."""
        valid = [each for each in samples if each.valid][:CAPACITY_RUNS]
        if not valid:
            why = "; ".join(samples[-1].invalid) if samples else "it was not measured"
            where = f" ({samples[-1].log})" if samples else ""
            raise InconclusiveError(
                f"{row}: its capacity is not known, no closed loop run can be used: {why}{where}",
                hint="remove the cause; the same command continues from the stored runs",
            )
        return cls(
            per_s=statistics.median(each.value(RATE.name) or 0.0 for each in valid),
            latency_s=statistics.median(each.value(LATENCY.name) or 0.0 for each in valid) / 1e6,
            bound=2 * sum(each.load_bound for each in valid) > len(valid),
        )

    def answers(self, rate: float) -> bool:
        """Whether a run at that rate can end in time."""
        return rate <= MOST_TIMES * self.per_s

    def connections(self, rate: float) -> int:
        """So many that an operation hardly ever waits for a free one."""
        return math.ceil(CONNECTIONS * min(rate, MOST_TIMES * self.per_s) * self.latency_s)


def measure_levels(
    request: LevelsRequest, engine: Engine, store: Store, watcher: Watcher
) -> LoadLevels:
    """Prepare the rows, find their capacity, and measure every level."""
    with row_lab(
        request, request.rows, 1, engine=engine, store=store, watcher=watcher, duet=False
    ) as lab:
        for failure in lab.failures.values():
            raise failure
        taken = OpenCampaigns(asked=request, kind="levels", lab=lab, store=store, watcher=watcher)
        return _Turns(request=request, taken=taken).all()


@dataclass(frozen=True, kw_only=True)
class _Turns:
    """The turns of all levels in one lab."""

    request: LevelsRequest
    taken: OpenCampaigns

    def all(self) -> LoadLevels:
        load, rows = self.request.load, self.request.rows
        measured = self.taken.valid(load, rows, CAPACITY_RUNS)
        capacity = {row: Capacity.of(row, _of(row, measured)) for row in rows}
        rates = self.request.rates_for(min(each.per_s for each in capacity.values()))
        connections = max(
            load.threads, *(each.connections(rates[-1]) for each in capacity.values())
        )
        levels = {rate: at_rate(load, rate, connections) for rate in rates}
        asked = {rate: tuple(row for row in rows if capacity[row].answers(rate)) for rate in rates}
        taken: dict[float, list[Sample]] = {}
        for number in range(1, self.request.runs + 1):
            for rate, names in asked.items():
                later = sum(map(len, asked.values())) * (self.request.runs - number)
                if names:
                    taken[rate] = self.taken.valid(levels[rate], names, number, later)
        used = [*measured, *(each for group in taken.values() for each in group)]
        return LoadLevels(
            workload_id=self.request.workloads[0].id,
            title=load.title,
            connections=connections,
            asked_runs=self.request.runs,
            measured_from=min(each.started_at for each in used),
            measured_until=max(each.started_at for each in used),
            rows=tuple(_row(row, capacity[row], rates, taken) for row in rows),
        )


def _of(row: str, samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.candidate_id == row]


def _row(
    row: str, capacity: Capacity, rates: Sequence[float], taken: Mapping[float, Sequence[Sample]]
) -> RowLevels:
    def level(rate: float) -> LoadLevel:
        if not capacity.answers(rate):
            why = (
                f"not measured: more than {MOST_TIMES:g} times its {significant(capacity.per_s)}/s"
            )
            return LoadLevel(asked_per_s=rate, note=why)
        return level_of(row, rate, _of(row, taken.get(rate, ())))

    note = (
        "the load had no CPU left in the closed loop: it may answer more" if capacity.bound else ""
    )
    return RowLevels.of(row, capacity.per_s, note, [level(rate) for rate in rates])
