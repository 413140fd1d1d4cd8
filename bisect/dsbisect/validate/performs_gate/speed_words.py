"""What is said of a comparison of speed. Pure."""

from __future__ import annotations

import math

from dsbisect.validate.performs_gate.margin import Comparison
from dsresults.number_text import significant


def change_text(interval: tuple[float, float]) -> str:
    """An interval of per cent: "1.2 to 3.4 % slower", "2.1 times slower to 2.2 times slower"."""
    low, high = interval
    if math.isinf(low) or math.isinf(high):
        return "not yet known"
    if low > 0 or high < 0:
        near, far = sorted((abs(low), abs(high)))
        word = "slower" if low > 0 else "faster"
        if far >= 100 and low > 0:
            return f"{_times(low)} to {_times(high)} times as slow"
        if word == "faster" and far >= 50:
            return f"{_times_faster(high)} to {_times_faster(low)} times as fast"
        return f"{significant(near)} to {significant(far)} % {word}"
    return f"{significant(-low)} % faster to {significant(high)} % slower"


def verdict_text(comparison: Comparison) -> str:
    margin = f"{comparison.margin:g} %"
    return {
        "worse": f"slower by more than {margin}",
        "better": f"faster by more than {margin}",
        "same": f"the same within {margin}",
        "not worse": f"not slower by {margin} or more",
        "undecided": f"not decided at a margin of {margin}",
    }[comparison.word]


def _times(pct: float) -> str:
    return significant(1 + pct / 100)


def _times_faster(pct: float) -> str:
    return significant(1 / (1 + pct / 100))
