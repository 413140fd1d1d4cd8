"""What the pairs say of memory: a leak, page faults, and how much is resident. Pure."""

from __future__ import annotations

import math

from dsbisect.validate.check import Check, Gate, Status
from dsbisect.validate.performs_gate.pair_values import Pairs, compared, middle, more
from dsharness.measure.metrics import FAULTS, GROWTH, MEMORY, MEMORY_AT_REST, Metric
from dsharness.model import Workload
from dsresults.number_text import significant

LEAK_BYTES = 64.0  # an operation; less is what an allocator's arenas gain and lose
MORE_RESIDENT = 0.1  # of stock's
MORE_FAULTS = 1.0  # an operation


def growth_is_clear(pairs: Pairs) -> bool:
    """Whether a leak is either shown or excluded; nothing is to be shown without a reading."""
    values = more(GROWTH, pairs)
    return not values or compared(values, LEAK_BYTES).decided


def memory_checks(workload: Workload, pairs: Pairs) -> list[Check]:
    """One for each that was measured."""
    return [check for check in (_growth(workload, pairs), _resident(workload, pairs)) if check]


def _growth(workload: Workload, pairs: Pairs) -> Check | None:
    values = more(GROWTH, pairs)
    if not values:
        return None
    leak = compared(values, LEAK_BYTES)
    status = {"worse": Status.FAILED, "undecided": Status.INCONCLUSIVE}.get(
        leak.word, Status.PASSED
    )
    if status is Status.FAILED:
        found = f"every operation leaves {_bytes(leak.interval)} more in memory than with stock"
    elif status is Status.PASSED:
        found = f"no operation leaves {LEAK_BYTES:g} bytes or more than with stock"
    else:
        found = (
            f"an operation leaves {_bytes(leak.interval)} more than with stock: a leak of "
            f"{LEAK_BYTES:g} bytes is neither shown nor excluded"
        )
    return Check(
        gate=Gate.PERFORMS,
        name=f"growth-{workload.id}",
        status=status,
        found=f"{workload.title}: {found}",
        advice={
            Status.FAILED: "look for what is not freed: run the server under valgrind's memcheck",
            Status.INCONCLUSIVE: "give --pairs a larger number; it goes on from here",
        }.get(status, ""),
        figures=_figures(pairs),
    )


def _resident(workload: Workload, pairs: Pairs) -> Check | None:
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
        return None
    return Check(
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


def _larger(metric: Metric, patched: float, stock: float) -> bool:
    least = MORE_FAULTS if metric is FAULTS else MORE_RESIDENT * stock
    return patched - stock > least


def _figures(pairs: Pairs) -> dict[str, str | int | float]:
    return {
        f"{GROWTH.label}, {side}": f"{significant(middle([pair[at] for pair in pairs], GROWTH))} B"
        for at, side in enumerate(("patched", "stock"))
    }


def _bytes(interval: tuple[float, float]) -> str:
    low, high = interval
    if math.isinf(low):
        return "an unknown number of bytes"
    return f"{low:.0f} to {high:.0f} bytes"
