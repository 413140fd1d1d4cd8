"""Figures for readers: three significant digits and a narrow space for thousands. Pure."""

from __future__ import annotations

import math

from dsharness.measure.metric import Metric

NARROW = "\u202f"  # no-break, so that a number never spans two lines


def significant(value: float) -> str:
    """Three significant digits, never in exponent form; from thousands on all digits are kept."""
    if not math.isfinite(value):
        return "unbounded"
    if value == 0:
        return "0"
    rounded = float(f"{value:.2e}")  # rounding first: 9.996 becomes 10.0, not 10.00
    decimals = 2 - math.floor(math.log10(abs(rounded)))
    return whole(rounded) if decimals <= 0 else f"{rounded:.{decimals}f}"


def whole(value: float) -> str:
    """An exact count with its thousands separated."""
    return f"{round(value):,}".replace(",", NARROW)


def signed(exponent: float) -> str:
    """An exponent to the hundredth, with a minus sign that is one."""
    return f"{exponent + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")


def counted(number: int, noun: str) -> str:
    """So many of it: `1 check`, `2 checks`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def times(value: float) -> str:
    """A factor; counts of rounds divide exactly, and then no digits are invented."""
    return f"{whole(value) if value == round(value) else significant(value)} times"


def milliseconds(us: float) -> str:
    return f"{significant(us / 1000)} ms"


def figure(metric: Metric, value: float) -> str:
    """A value of this metric with its unit."""
    if metric.unit == "µs":
        return milliseconds(value)
    unit = "/s" if metric.unit == "1/s" else f" {metric.unit}"
    return significant(value) + unit


def duration(seconds: float) -> str:
    """Time in its two largest units: 50 s, 1 min 20 s, 2 h 5 min."""
    whole_s = round(seconds)
    minutes, rest_s = divmod(whole_s, 60)
    hours, rest_min = divmod(minutes, 60)
    parts = ((hours, "h"), (rest_min, "min")) if hours else ((minutes, "min"), (rest_s, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def percent(value: float) -> str:
    return f"{significant(value)} %"
