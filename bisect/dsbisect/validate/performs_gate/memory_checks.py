"""What the pairs say of memory: page faults, and how much is resident. Pure."""

from __future__ import annotations

import math

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.performs_gate.margin import Pairs, middle
from dsharness.measure.metrics import FAULTS, MEMORY, MEMORY_AT_REST, Metric
from dsharness.model import Workload
from dsresults.number_text import significant

MORE_RESIDENT = 0.1  # of stock's
MORE_FAULTS = 1.0  # an operation


def memory_checks(workload: Workload, pairs: Pairs) -> list[Check]:
    """What is resident, and page faults; nothing where neither could be read."""
    figures = {
        metric: [middle([pair[side] for pair in pairs], metric) for side in (0, 1)]
        for metric in (MEMORY_AT_REST, MEMORY, FAULTS)
    }
    larger = [
        f"{metric.title} {significant(patched)} {metric.unit} instead of {significant(stock)}"
        for metric, (patched, stock) in figures.items()
        if _larger(metric, patched, stock)
    ]
    if all(math.isnan(patched) for patched, _ in figures.values()):
        return []
    check = Check(
        gate=Gate.PERFORMS,
        name=f"memory-{workload.id}",
        status=Status.WARNED if larger else Status.PASSED,
        found=f"{workload.title}: "
        + ("; ".join(larger) if larger else "memory and page faults are as with stock"),
        advice="see whether that is meant" if larger else "",
        figures={
            f"{metric.label}, {side}": f"{significant(value)} {metric.unit}"
            for metric, both in figures.items()
            for side, value in zip(("patched", "stock"), both, strict=True)
        },
    )
    return [check]


def _larger(metric: Metric, patched: float, stock: float) -> bool:
    least = MORE_FAULTS if metric is FAULTS else MORE_RESIDENT * stock
    return patched - stock > least
