"""One figure of the benchmark, next to what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Figure:
    """``met`` is None where nothing was asked for."""

    what: str
    told: str
    target: str = ""
    met: bool | None = None

    @classmethod
    def of_times(cls, what: str, seconds: Sequence[float], limit_s: float | None = None) -> Self:
        """The median decides: the slowest one had to wait for whatever else the machine did."""
        middle, slowest = 1000 * median(seconds), 1000 * max(seconds)
        shown_value = f"{middle:.0f} ms"
        if len(seconds) > 1:
            shown_value += f" in the median of {len(seconds)}, {slowest:.0f} ms at most"
        if limit_s is None:
            return cls(what=what, told=shown_value)
        return cls(
            what=what,
            told=shown_value,
            target=f"{1000 * limit_s:.0f} ms",
            met=middle <= 1000 * limit_s,
        )

    def with_cpu(self, seconds: Sequence[float]) -> Self:
        """With the CPU time of the program alone: where others work too, it waits for a CPU."""
        shown_value = f"{self.told}; {1000 * median(seconds):.0f} ms of CPU time"
        return replace(self, told=shown_value)

    def __str__(self) -> str:
        """A row of a Markdown table."""
        met = {True: "met", False: "MISSED", None: ""}[self.met]
        return f"| {self.what} | {self.target} | {self.told} | {met} |"
