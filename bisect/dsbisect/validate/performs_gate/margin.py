"""Whether the patched side is worse than the stock one by more than a margin. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dsbisect.validate.performs_gate.median_interval import Interval

LEVEL = 0.95  # of each interval, at every look

Word = Literal["better", "same", "not worse", "worse", "undecided"]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How much worse, as an interval in units of the margin: per cent, or the metric's own."""

    interval: Interval
    margin: float

    @property
    def word(self) -> Word:
        low, high = self.interval
        if low > self.margin:
            return "worse"
        if high < -self.margin:
            return "better"
        if high < self.margin:
            return "same" if low > -self.margin else "not worse"
        return "undecided"

    @property
    def decided(self) -> bool:
        return self.word != "undecided"
