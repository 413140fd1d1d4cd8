"""How a server answers while the load on it rises: each level, its knee, half of that. Pure.

A level is a rate at which operations begin by a schedule. Where the load itself was the limit, a
level says nothing of the server, neither for nor against it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from pydantic import Field

from dsharness.measure.metrics import CPU, LATENCY_P99, RATE
from dsharness.model import Latencies, Sample, Value
from dsresults.compare.latency_curves import IN_TABLE, Percentile, latency_curve
from dsresults.number_text import counted, milliseconds, significant

KEPT_PCT = 97.0
SLOWER = 3.0
RULE = (
    f"The knee is the lowest level at which fewer than {KEPT_PCT:g} % of the asked operations a "
    f"second are answered, or at which p99 is more than {SLOWER:g} times that of the lowest level; "
    "both by the median of the runs."
)


class LoadLevel(Value):
    """One row at one rate."""

    asked_per_s: float
    runs: int = Field(default=0, description="valid ones")
    reached_per_s: float | None = Field(default=None, description="the median of the runs")
    reached_low: float | None = None
    reached_high: float | None = None
    p99_us: float | None = Field(
        default=None, description="the median of the runs' own; absent if all have too few"
    )
    percentiles: tuple[Percentile, ...] = Field(default=(), description="of all runs together")
    max_us: float | None = None
    cpus: float | None = Field(default=None, description="that the server kept busy")
    note: str = Field(default="", description="why it says nothing of the row")
    by_load: bool = Field(default=False, description="because the load itself was the limit")
    failed: bool = Field(default=False, description="no run of it was valid, and one should be")

    @property
    def known(self) -> bool:
        """Whether it says something of the row."""
        return self.reached_per_s is not None and not self.note

    def at(self, percent: float) -> Percentile | None:
        """None where fewer than five operations took longer."""
        return next((each for each in self.percentiles if each.percent == percent), None)


def level_of(row: str, asked_per_s: float, samples: Sequence[Sample]) -> LoadLevel:
    """The figures of a row's runs at a rate, or why there are none."""
    valid = [sample for sample in samples if sample.valid]
    if not valid:
        note, by_load = _why_none(samples)
        return LoadLevel(asked_per_s=asked_per_s, note=note, by_load=by_load, failed=not by_load)
    reached = [sample.value(RATE.name) or 0.0 for sample in valid]
    curve = latency_curve(row, [whole_times(sample) for sample in valid if sample.latencies])
    shown = tuple(each for each in curve.percentiles if each.percent in IN_TABLE) if curve else ()
    enough = any(each.percent == 99.0 for each in shown)
    bound = 2 * sum(sample.load_bound for sample in valid) > len(valid)
    return LoadLevel(
        asked_per_s=asked_per_s,
        runs=len(valid),
        reached_per_s=statistics.median(reached),
        reached_low=min(reached),
        reached_high=max(reached),
        p99_us=_median(valid, lambda sample: sample.value(LATENCY_P99.name)) if enough else None,
        percentiles=shown,
        max_us=curve.max_us if curve else None,
        cpus=_median(valid, _cpus),
        note="the load was the limit at this level: it had no CPU left" if bound else "",
        by_load=bound,
    )


def _why_none(samples: Sequence[Sample]) -> tuple[str, bool]:
    """Why no run is valid, and whether that is the load's doing in all of them."""
    if not samples:
        return unusable(samples), False
    last = samples[-1]
    # What the load says of itself is an objection and an excuse; other disturbances only excuse.
    own = [[why for why in each.disturbed if why in each.invalid] for each in samples]
    if all(own):
        return f"the load was the limit at this level: {'; '.join(own[-1])} ({last.log})", True
    return unusable(samples), False


def unusable(samples: Sequence[Sample]) -> str:
    """Why none of these can be used."""
    if not samples:
        return "not measured"
    last = samples[-1]
    why = "; ".join(dict.fromkeys((*last.invalid, *last.disturbed)))
    return f"none of {counted(len(samples), 'run')} can be used: {why} ({last.log})"


def whole_times(sample: Sample) -> Latencies:
    """Of its operations of every kind as one."""
    return Latencies.merged(sample.latencies.values())


def _cpus(sample: Sample) -> float | None:
    each_us = sample.value(CPU.name)
    busy = each_us and sample.duration_s and each_us * sample.operations / sample.duration_s / 1e6
    return busy or None


def _median(samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> float | None:
    known = [found for found in map(value, samples) if found is not None]
    return statistics.median(known) if known else None


class Knee(Value):
    """Between which two levels it lies; all known levels up to the first are kept."""

    above_per_s: float | None = Field(default=None, description="absent: the lowest is past it")
    at_most_per_s: float | None = Field(
        default=None, description="all known levels from here on are past it; absent: none is"
    )
    why: str = ""

    def __str__(self) -> str:
        above, at_most = (
            "" if rate is None else significant(rate)
            for rate in (self.above_per_s, self.at_most_per_s)
        )
        reason = f": {self.why}" if self.why else ""
        if above and at_most:
            return f"knee between {above} and {at_most}/s{reason}"
        if at_most:
            return f"knee at {at_most}/s or below{reason}"
        if self.why:
            return f"knee not clear{reason}"
        return f"no knee up to {above}/s"


def knee_of(levels: Sequence[LoadLevel]) -> Knee:
    """The knee by ``RULE``; where levels contradict each other, the interval is wider."""
    known = sorted((each for each in levels if each.known), key=lambda each: each.asked_per_s)
    if not known:
        return Knee(why="no level says anything of the row")
    past = [_past(each, known[0]) for each in known]
    rates = [each.asked_per_s for each in known]
    kept = [at for at, why in enumerate(past) if not why]
    first = next((at for at, why in enumerate(past) if why), len(past))
    last_kept = max(kept, default=-1)
    above = rates[first - 1] if first else None
    if first == len(past):
        return Knee(above_per_s=above)
    if last_kept < first:
        return Knee(above_per_s=above, at_most_per_s=rates[first], why=past[first])
    lower, higher = significant(rates[first]), significant(rates[last_kept])
    odd = f"at {lower}/s {past[first]}, but not at {higher}/s"
    at_most = rates[last_kept + 1] if last_kept + 1 < len(past) else None
    return Knee(above_per_s=above, at_most_per_s=at_most, why=odd)


def _past(level: LoadLevel, lowest: LoadLevel) -> str:
    """Why a level is past the knee; empty where it is kept."""
    reached = level.reached_per_s or 0.0
    if reached < KEPT_PCT / 100 * level.asked_per_s:
        busy = "" if level.cpus is None else f", with {level.cpus:.2f} CPUs busy"
        return f"only {significant(reached)}/s are reached{busy}"
    if level.p99_us and lowest.p99_us and level.p99_us > SLOWER * lowest.p99_us:
        return f"p99 is {milliseconds(level.p99_us)}, at the lowest {milliseconds(lowest.p99_us)}"
    return ""


def half_of(levels: Sequence[LoadLevel], knee: Knee) -> LoadLevel | None:
    """The known level that is nearest to half of the last rate before the knee."""
    if knee.above_per_s is None:
        return None
    half = knee.above_per_s / 2
    known = (each for each in levels if each.known)
    return min(known, key=lambda each: (abs(each.asked_per_s - half), each.asked_per_s))


class RowLevels(Value):
    """One row: what it answers without a schedule, and at each level."""

    row: str
    capacity_per_s: float = Field(description="of a closed loop, the median of its runs")
    note: str = Field(default="", description="why its capacity may be more")
    levels: tuple[LoadLevel, ...]
    knee: Knee
    half: LoadLevel | None = Field(description="the level that is nearest to half of the knee")

    @classmethod
    def of(
        cls, row: str, capacity_per_s: float, note: str, levels: Sequence[LoadLevel]
    ) -> RowLevels:
        knee = knee_of(levels)
        return cls(
            row=row, capacity_per_s=capacity_per_s, note=note, levels=tuple(levels), knee=knee,
            half=half_of(levels, knee),
        )  # fmt: skip


class LoadLevels(Value):
    """All rows under the same levels of one workload."""

    workload_id: str
    title: str
    connections: int = Field(description="of each level's load")
    asked_runs: int = Field(description="valid ones of each row and level")
    rule: str = RULE
    measured_from: str
    measured_until: str
    rows: tuple[RowLevels, ...]

    @property
    def inconclusive(self) -> bool:
        """Whether a level failed for a reason that is not the load's own, or a row has none."""
        levels = [row.levels for row in self.rows]
        return any(
            any(each.failed for each in group) or not any(each.known for each in group)
            for group in levels
        )
