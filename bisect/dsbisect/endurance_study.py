"""A row under load for a long time: phases at shares of what it answers, on one server.

Each phase is cut into runs that follow each other at once, so that what changes with time is seen.
An interrupted one begins again: its server has ended.
"""

from __future__ import annotations

from dsbisect.capacity import CAPACITY_RUNS, Capacity, closed_loop, rounded_rate
from dsbisect.levels_study import at_rate
from dsbisect.studies import Endurance
from dsbisect.study_lab import Lab
from dsharness.errors import UsageError
from dsharness.measure.gate import is_fed
from dsharness.model import Workload
from dsresults.compare.endured_phases import Endurance as Endured
from dsresults.compare.endured_phases import endurance_of, endured_phase

TOP_PCT = 60.0  # of the capacity: a machine that is full all day says nothing of its server
SLICES = 60  # of the whole time, as long as a run has between 5 and 30 s
SHORTEST_S, LONGEST_S = 5.0, 30.0


def reading_load(workload: Workload) -> Workload:
    """The load in a closed loop; UsageError where the same server cannot serve all of it."""
    load = closed_loop(workload)
    if load.writes:
        raise UsageError(
            f"workload {workload.named!r} writes: each of its runs begins with a new server",
            hint="take one that only reads, such as search-as-user or session",
        )
    return load


def play_endurance(study: Endurance, lab: Lab) -> Endured:
    """Find what the row answers, then go through the phases."""
    load = reading_load(lab.scene.workload(study.workload))
    parts = sum(part for _, part in study.phases)
    lengths_s = [study.minutes * 60 * part / parts for _, part in study.phases]
    slice_s = min(LONGEST_S, max(SHORTEST_S, study.minutes * 60 / SLICES))
    numbers = [max(1, round(length_s / slice_s)) for length_s in lengths_s]
    with lab.rows(study, load) as runs:
        runs.refuse_failed()
        measured = runs.valid(load, (study.row,), CAPACITY_RUNS, counts=is_fed)
        capacity = Capacity.of(study.row, measured)
        top = study.rate or capacity.per_s * (study.top_pct or TOP_PCT) / 100
        rates = [rounded_rate(top * share / 100) for share, _ in study.phases]
        connections = max(load.threads, capacity.connections(max(rates)))
        phases = []
        for index, (share, _) in enumerate(study.phases):
            number, rate = numbers[index], rates[index]
            slices = at_rate(load, rate, connections).model_copy(
                update={
                    "id": f"{load.id[:48]}-phase-{index + 1}",
                    "duration_s": lengths_s[index] / number,
                }
            )
            samples = runs.stretch(slices, study.row, number, sum(numbers[index + 1 :]))
            phases.append(endured_phase(share, rate, samples))
    return endurance_of(
        row=study.row,
        workload_id=lab.scene.workload(study.workload).id,
        title=load.title,
        capacity_per_s=capacity.per_s,
        connections=connections,
        phases=phases,
    )
