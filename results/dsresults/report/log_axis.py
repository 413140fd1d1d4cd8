"""A log axis: from costs to places, and the round figures along it. Pure."""

from __future__ import annotations

import math

from dsharness.model import Value

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
