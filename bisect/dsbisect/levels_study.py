"""Rows under rising load: their capacity first, then runs by a schedule at shares of it.

A level is a workload of its own, with a campaign of its own; the levels take turns. What is stored
counts: the same request goes on where it was interrupted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsbisect.capacity import (
    CAPACITY_RUNS,
    MOST_TIMES,
    Capacity,
    capacities,
    closed_loop,
    connections_for,
    rounded_rate,
)
from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.measure.metrics import LATENCY_P99
from dsharness.model import LdaploadWorkload, Sample
from dslab.laboratory import refuse_failed
from dslab.watcher import Watcher
from dsresults.compare.load_levels import LoadLevel, LoadLevels, RowLevels, level_of
from dsresults.number_text import significant
from dsresults.store import Store

SHARES_PCT = (25.0, 50.0, 75.0, 90.0, 100.0, 110.0)  # of the capacity
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


def measure_levels(
    request: LevelsRequest, engine: Engine, store: Store, watcher: Watcher
) -> LoadLevels:
    """Prepare the rows, find their capacity, and measure every level."""
    with row_lab(
        request, request.rows, 1, engine=engine, store=store, watcher=watcher, duet=False
    ) as lab:
        refuse_failed(lab)
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
        capacity = capacities(rows, measured)
        rates = self.request.rates_for(min(each.per_s for each in capacity.values()))
        connections = connections_for(load, rates[-1], capacity.values())
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
