"""Figures and moments for readers: three significant digits, narrow spaces, UTC. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from dsharness.measure.metric import Metric, Words
from dsharness.model import Boundary, CostStep, Counts


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
    return f"{round(value):,}"


def signed(exponent: float) -> str:
    """An exponent to the hundredth, with a minus sign that is one."""
    return f"{exponent + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "\u2212")


def counted(number: int, noun: str) -> str:
    """So many of it: `1 check`, `2 checks`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def times(value: float) -> str:
    """A factor; counts of rounds divide exactly, and then no digits are invented."""
    return f"{whole(value) if value == round(value) else significant(value)} times"


def milliseconds(time_us: float) -> str:
    return f"{significant(time_us / 1000)} ms"


def figure(metric: Metric, value: float) -> str:
    """A value of this metric with its unit."""
    if metric.unit == "µs":
        return milliseconds(value)
    unit = "/s" if metric.unit == "1/s" else f" {metric.unit}"
    return significant(value) + unit


def plainly(value: float) -> str:
    """Three significant digits, and no noughts behind them: 0, 2, 11.4."""
    text = significant(value)
    return text.rstrip("0").rstrip(".") if "." in text else text


def from_to(counts: Counts) -> str:
    """``from 0 to 2 flushes an operation``."""
    return f"from {plainly(counts.before)} to {plainly(counts.after)} {counts.unit} an operation"


def count_intervals(counts: Counts) -> str:
    """``0 to 0.01 and 1.98 to 2.02, of the difference 1.97 to 2.02``: of both sides."""
    intervals = (counts.before_interval, counts.after_interval, counts.difference_interval)
    before, after, difference = (f"{plainly(low)} to {plainly(high)}" for low, high in intervals)
    return f"{before} and {after}, of the difference {difference}"


def sized(words: Words, boundary: Boundary) -> str:
    """``5.40 times slower``; of counts ``flushes more to disk, from 0 to 2 … an operation,``."""
    if boundary.counts is not None:
        return f"{words.said(boundary.direction)}, {from_to(boundary.counts)},"
    return words.said(boundary.direction, f"{significant(boundary.effect or 1.0)} times")


def second_steps(words: Words, boundary: Boundary) -> Iterator[tuple[CostStep, str]]:
    """Yield likely steps other than the one that is named: ``debian-12: 2.15 times faster``.

    Where what lies between was not measured, that is ``after a, up to d: 2.15 times faster``.
    """
    place = {name: number for number, name in enumerate(boundary.line)}
    for step in boundary.steps:
        if step.after not in boundary.also or not step.ratio:
            continue
        factor = f"{significant(max(step.ratio, 1 / step.ratio))} times"
        size = words.said("slower" if step.ratio > 1 else "faster", factor)
        alone = place.get(step.after, 1) - place.get(step.before, 0) == 1
        where = step.after if alone else f"after {step.before}, up to {step.after}"
        yield step, f"{where}: {size}"


def interval_text(boundary: Boundary) -> str:
    """Behind that, in brackets; empty where there is none."""
    level = f"{100 * boundary.effect_level:.3g} % interval"
    if boundary.counts is not None:
        return f" ({level}s {count_intervals(boundary.counts)})"
    if boundary.effect_interval is None:
        return ""
    low, high = map(significant, boundary.effect_interval)
    return f" ({level} {low} to {high})"


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


def chance_text(chance: float) -> str:
    """Return a chance without digits that it does not have."""
    if 0 < chance < 0.005:
        return "under 1 %"
    return "over 99 %" if 0.995 < chance < 1 else f"{100 * chance:.0f} %"


def utc(moment: str | None) -> str:
    """Return a stored moment as UTC to the second; anything else is shown unchanged."""
    if not moment:
        return ""
    try:
        parsed = datetime.fromisoformat(moment)
        aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        moment_utc = aware.astimezone(UTC)  # no UTC for a first or last hour of all time
    except (ValueError, OverflowError):
        return moment
    return f"{moment_utc.replace(tzinfo=None).isoformat(sep=' ', timespec='seconds')} UTC"


def measured_between(first_moment: str, ended: str) -> str:
    """Return the sentence of every page that says when."""
    return f"Measured from {utc(first_moment)} to {utc(ended)}"
