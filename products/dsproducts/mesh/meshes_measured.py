"""Meshes next to each other: how fast they are, how soon a peer is back, whether they grow."""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from dsbisect.claims.binds_measured import arm_runs
from dsbisect.claims.claims_lab import ClaimsLab
from dsharness.matrix import find_workload
from dsharness.measure.metrics import COST, CPU, LATENCY, MEMORY, RATE
from dsharness.model import Identifier, Sample, Workload
from dsharness.products.published_claims import Experiment, MeasurementBase
from dsproducts.mesh.mesh_workloads import BLOCK_BYTES
from dsresults.compare.trial_claims import RatioFigures
from dsresults.number_text import significant

MBIT, NS_PER_US = 1e6, 1000.0


class MeshesMeasured(MeasurementBase):
    """Rows under one load of meshes, in turn."""

    kind: Literal["meshes"]
    rows: tuple[Identifier, ...] = Field(min_length=1, description="the first one is divided by")
    workload: Identifier
    divided: Literal["speeds", "seconds", "memory"] = Field(
        description="the first row's cost and those of the others; mean seconds of an operation; "
        "memory after the last run and after the first"
    )
    seconds: PositiveFloat | None = Field(default=None, description="of a run; else as it says")
    runs: PositiveInt = 3


Valid = Mapping[str, Sequence[Sample]]  # by row, in their order; a row may have none


def measure_meshes(lab: ClaimsLab, measured: MeshesMeasured) -> RatioFigures:
    """A row without a valid run is no case, and says why."""
    load = find_workload(lab.matrix, measured.workload)
    if measured.seconds is not None:
        load = load.model_copy(
            update={
                "id": f"{load.id}-{measured.seconds:g}",
                "duration_s": measured.seconds,
                "most_s": measured.seconds,
            }
        )
    runs = arm_runs(lab, measured.rows, (load,), measured.runs)
    valid = {
        row: [sample for sample in runs.samples[row].get(load.id, ()) if sample.valid]
        for row in measured.rows
    }
    what, axis, divide = DIVIDED[measured.divided]
    return RatioFigures(
        what=what.format(first=measured.rows[0]),
        axis=axis,
        ratios=divide(valid),
        failed=(
            *(f"{row}: {why}" for row, why in runs.failed.items()),
            *(f"{row} gave no valid run under {load.id}" for row in valid if not valid[row]),
        ),
        lines=tuple(
            f"{row}: {figures(load, samples)}" for row, samples in valid.items() if samples
        ),
    )


def figures(load: Workload, samples: Sequence[Sample]) -> str:
    """What runs of one row came to, in a sentence; blocks as bits and bytes."""
    rate, cpu_us = median(samples, RATE.name), median(samples, CPU.name)
    if load.operation == "block":
        return (
            f"{significant(rate * BLOCK_BYTES * 8 / MBIT)} Mbit/s, "
            f"{significant(cpu_us * NS_PER_US / BLOCK_BYTES)} ns of CPU a byte"
        )
    mean_s = median(samples, LATENCY.name) / 1e6
    return f"{significant(mean_s)} s, {significant(cpu_us / 1e6)} s of CPU each"


def median(samples: Sequence[Sample], metric: str) -> float:
    return statistics.median(sample.value(metric) or 0.0 for sample in samples)


def _speeds(valid: Valid) -> dict[str, float]:
    """Peers are as fast as their CPUs, and a rate is that of a machine with others on it."""
    first, *others = (median(samples, COST.name) if samples else 0.0 for samples in valid.values())
    return {
        row: first / cost for row, cost in zip([*valid][1:], others, strict=True) if first and cost
    }


def _seconds(valid: Valid) -> dict[str, float]:
    return {row: median(samples, LATENCY.name) / 1e6 for row, samples in valid.items() if samples}


def _memory(valid: Valid) -> dict[str, float]:
    return {
        row: (samples[-1].value(MEMORY.name) or 0.0) / (samples[0].value(MEMORY.name) or 1.0)
        for row, samples in valid.items()
        if len(samples) > 1
    }


# What is divided, what its cases differ in, and how.
DIVIDED: Mapping[str, tuple[str, str, Callable[[Valid], dict[str, float]]]] = {
    "speeds": ("the speed by CPU time, as a share of that of {first}", "the program", _speeds),
    "seconds": (
        "the seconds until a peer that was started again has traffic", "the program", _seconds
    ),
    "memory": (
        "how many times the memory of all peers grew between two runs", "the program", _memory
    ),
}  # fmt: skip

EXPERIMENTS = (
    Experiment(asked=MeshesMeasured, title="meshes of three peers", measure=measure_meshes),
)
