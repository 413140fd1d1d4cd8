"""Positions in a chart; the template draws them. Pure geometry."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from dsharness.measure.metrics import COST
from dsharness.model import Boundary, Outcome, Sample, Value
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.number_text import milliseconds

WIDTH = 480
TOP, ROW, BOTTOM = 10, 60, 30


class Mark(Value):
    """One candidate: its dot, its interval, its samples, in drawing units."""

    candidate: str
    outcome: Outcome
    y: float
    x: float | None = None
    low: float | None = None
    high: float | None = None
    dots: tuple[float, ...] = ()
    label: str = ""


class Chart(Value):
    """Cost on a log axis over the candidates of a line, for one workload."""

    workload_id: str
    title: str
    description: str
    height: float
    axis_y: float
    ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...]
    boundary_y: float | None = None
    boundary_end_y: float | None = None  # differs where several candidates are suspected
    boundary_label: str = ""


def charts(comparison: ComparisonTable, samples: Sequence[Sample]) -> tuple[Chart, ...]:
    """One chart for each workload, all with the same axis so that they can be compared."""
    ours = {
        column.campaign_id: [s for s in samples if s.campaign_id == column.campaign_id and s.valid]
        for column in comparison.columns
    }
    speeds = [s.calibrator_us for group in ours.values() for s in group if s.calibrator_us]
    if not speeds:
        return ()
    unit_us = statistics.median(speeds)  # calibrated cost as time on this machine's usual speed
    costs = {
        (column.campaign_id, candidate): [
            value * unit_us
            for sample in ours[column.campaign_id]
            if sample.candidate_id == candidate and (value := sample.value(COST.name))
        ]
        for column in comparison.columns
        for candidate in comparison.line
    }
    values = [value for group in costs.values() for value in group]
    if not values:
        return ()
    scale = Scale(low=min(values) / 1.5, high=max(values) * 1.5)
    return tuple(_chart(comparison, column, costs, scale) for column in comparison.columns)


def _chart(
    comparison: ComparisonTable,
    column: Column,
    costs: Mapping[tuple[str, str], list[float]],
    scale: Scale,
) -> Chart:
    of = {one: costs[column.campaign_id, one] for one in comparison.line}
    reference = of.get(column.reference or "") or []
    base = statistics.geometric_mean(reference) if reference else None
    marks = tuple(
        _mark(column.of(candidate) or Observed(candidate=candidate), of[candidate], base, scale, y)
        for y, candidate in ((TOP + ROW * (i + 0.5), c) for i, c in enumerate(comparison.line))
    )
    axis_y = TOP + ROW * len(comparison.line)
    found = column.boundary if column.boundary and column.boundary.found else None
    return Chart(
        workload_id=column.workload_id,
        title=f"Cost of one operation, {column.workload_id}",
        description="; ".join(
            f"{one.candidate}: {column.verdict_word(one)}, {mark.label}"
            for one, mark in zip(column.observed, marks, strict=True)
        ),
        height=axis_y + BOTTOM,
        axis_y=axis_y,
        ticks=scale.ticks(),
        marks=marks,
        **_boundary(comparison.line, found),
    )


def _boundary(line: tuple[str, ...], found: Boundary | None) -> dict[str, Any]:
    """One edge above the first changed candidate, or a band over all that may be the first."""
    if found is None or found.before not in line or found.after not in line:
        return {}
    begin, end = line.index(found.before) + 1, line.index(found.after)
    where = "from here on" if begin == end else "from somewhere here on"
    return {
        "boundary_y": TOP + ROW * begin,
        "boundary_end_y": TOP + ROW * end,
        "boundary_label": f"{found.direction} {where}",
    }


def _mark(
    observed: Observed, dots: list[float], base: float | None, scale: Scale, y: float
) -> Mark:
    mark = Mark(
        candidate=observed.candidate,
        outcome=observed.outcome,
        y=y,
        dots=tuple(scale.x(value) for value in dots),
        label="not measured" if not dots else milliseconds(statistics.geometric_mean(dots)),
    )
    ratio = observed.cost_ratio
    if not dots or ratio is None or base is None:
        return mark
    low, high = ratio.interval or (ratio.value, ratio.value)
    return mark.model_copy(
        update={
            "x": scale.x(base * ratio.value),
            "low": scale.x(max(base * low, scale.low)),
            "high": scale.x(base * high),
            "label": milliseconds(base * ratio.value),
        }
    )


LEFT, RIGHT = 12, 468


class Tick(Value):
    x: float
    label: str


class Scale(Value):
    low: float
    high: float

    def x(self, value: float) -> float:
        span = math.log(self.high / self.low) or 1.0
        share = math.log(value / self.low) / span
        return round(LEFT + (RIGHT - LEFT) * min(max(share, 0.0), 1.0), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """1, 2 and 5 of each decade, or only the decades if that would be too many."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        fine = self.high / self.low < 60
        steps = (1, 2, 5) if fine else (1,)
        values = [step * 10.0**power for power in decades for step in steps]
        return tuple(
            Tick(x=self.x(value), label=f"{value / 1000:g} ms")
            for value in values
            if self.low <= value <= self.high
        )
