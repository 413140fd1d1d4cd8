"""Rows under rising load: their capacity first, then runs by a schedule at shares of it.

A level is a workload of its own, with a campaign of its own; the levels take turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsbisect.capacity import (
    CAPACITY_RUNS,
    MOST_TIMES,
    Capacity,
    capacities,
    closed_loop,
    connections_for,
    rounded_rate,
)
from dsbisect.studies import Levels
from dsbisect.study_lab import Lab
from dsharness.measure.gate import is_fed
from dsharness.model import Sample, Workload
from dsresults.compare.load_levels import LoadLevel, LoadLevels, RowLevels, level_of
from dsresults.number_text import significant

SHARES_PCT = (25.0, 50.0, 75.0, 90.0, 100.0, 110.0)  # of the capacity
FEWEST = 300  # operations of a run ...
LONGEST_S = 30.0  # ... unless they take longer


def at_rate(load: Workload, rate: float, connections: int) -> Workload:
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


def level_rates(study: Levels, capacity_per_s: float) -> tuple[float, ...]:
    """The rates of all levels, the lowest first."""
    shares = (capacity_per_s * share / 100 for share in study.shares_pct or SHARES_PCT)
    return tuple(sorted({rounded_rate(rate) for rate in study.rates or shares}))


def play_levels(study: Levels, lab: Lab) -> LoadLevels:
    """Find what the rows answer, then measure every level."""
    rows, load = study.rows, closed_loop(lab.scene.workload(study.workload))
    with lab.rows(study, load) as runs:
        runs.refuse_failed()
        measured = runs.valid(load, rows, CAPACITY_RUNS, counts=is_fed)
        capacity = capacities(rows, measured)
        rates = level_rates(study, min(row.per_s for row in capacity.values()))
        connections = connections_for(load, rates[-1], capacity.values())
        able = {rate: tuple(row for row in rows if capacity[row].answers(rate)) for rate in rates}
        able_rows = {rate: names for rate, names in able.items() if names}
        loads = [(at_rate(load, rate, connections), names) for rate, names in able_rows.items()]
        samples_by_rate = dict(zip(able_rows, runs.in_turn(loads, study.runs), strict=True))
    all_samples = [
        *measured,
        *(sample for samples in samples_by_rate.values() for sample in samples),
    ]
    return LoadLevels(
        workload_id=lab.scene.workload(study.workload).id,
        title=load.title,
        connections=connections,
        asked_runs=study.runs,
        measured_from=min(sample.started_at for sample in all_samples),
        measured_until=max(sample.started_at for sample in all_samples),
        rows=tuple(_row(row, capacity[row], rates, samples_by_rate) for row in rows),
    )


def _row(
    row: str,
    capacity: Capacity,
    rates: Sequence[float],
    samples_by_rate: Mapping[float, Sequence[Sample]],
) -> RowLevels:
    def level(rate: float) -> LoadLevel:
        if not capacity.answers(rate):
            why = (
                f"not measured: more than {MOST_TIMES:g} times its {significant(capacity.per_s)}/s"
            )
            return LoadLevel(asked_per_s=rate, note=why)
        samples = [sample for sample in samples_by_rate.get(rate, ()) if sample.candidate_id == row]
        return level_of(row, rate, samples)

    note = (
        "the load had no CPU left in the closed loop: it may answer more" if capacity.bound else ""
    )
    return RowLevels.of(row, capacity.per_s, note, [level(rate) for rate in rates])
