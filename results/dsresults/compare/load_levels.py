"""How a server answers while the load on it rises: each level, its knee, and their page. Pure.

A level is a rate at which operations begin by a schedule. Where the load itself was the limit, a
level says nothing of the server, neither for nor against it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from pydantic import Field

from dsharness.measure.gate import is_fed, starved
from dsharness.measure.metrics import CPU, LATENCY_P99, RATE
from dsharness.model import Latencies, Sample, Value
from dsresults.compare.latency_curves import (
    FEWEST_SLOWER,
    IN_TABLE,
    Percentile,
    latency_curve,
    percentile_cell,
)
from dsresults.compare.operation_parts import OperationParts, parts_tables
from dsresults.number_text import counted, measured_between, milliseconds, significant
from dsresults.page.chart import (
    MOST_LINES,
    Axis,
    Chart,
    ChartLine,
    even_axis,
    line_chart,
    log_axis,
    short_name,
)
from dsresults.page.page import (
    Card,
    Cell,
    Column,
    Content,
    Page,
    Section,
    Table,
    code,
    key,
    note,
    or_dash,
)

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
    parts: OperationParts = Field(
        default=OperationParts(), exclude_if=lambda parts: parts == OperationParts()
    )
    note: str = Field(default="", description="why it says nothing of the row")
    by_load: bool = Field(default=False, description="because the load itself was the limit")
    failed: bool = Field(default=False, description="no run of it was valid, and one should be")

    @property
    def known(self) -> bool:
        """Whether it says something of the row."""
        return self.reached_per_s is not None and not self.note

    def at(self, percent: float) -> Percentile | None:
        """None where fewer than five operations took longer."""
        return next(
            (percentile for percentile in self.percentiles if percentile.percent == percent), None
        )


def level_of(row: str, asked_per_s: float, samples: Sequence[Sample]) -> LoadLevel:
    """The figures of a row's runs at a rate, or why there are none."""
    valid = list(filter(is_fed, samples))
    if not valid:
        note, by_load = _why_none(samples)
        return LoadLevel(asked_per_s=asked_per_s, note=note, by_load=by_load, failed=not by_load)
    reached = [sample.value(RATE.name) or 0.0 for sample in valid]
    curve = latency_curve(row, [whole_times(sample) for sample in valid if sample.latencies])
    percentiles_shown = (
        tuple(percentile for percentile in curve.percentiles if percentile.percent in IN_TABLE)
        if curve
        else ()
    )
    enough = any(percentile.percent == 99.0 for percentile in percentiles_shown)
    bound = 2 * sum(sample.load_bound for sample in valid) > len(valid)
    return LoadLevel(
        asked_per_s=asked_per_s,
        runs=len(valid),
        reached_per_s=statistics.median(reached),
        reached_low=min(reached),
        reached_high=max(reached),
        p99_us=_median(valid, lambda sample: sample.value(LATENCY_P99.name)) if enough else None,
        percentiles=percentiles_shown,
        max_us=curve.max_us if curve else None,
        cpus=_median(valid, _cpus),
        parts=OperationParts.of(valid),
        note="the load was the limit at this level: it had no CPU left" if bound else "",
        by_load=bound,
    )


def _why_none(samples: Sequence[Sample]) -> tuple[str, bool]:
    """Why no run is valid, and whether that is the load's doing in all of them."""
    if not samples:
        return unusable(samples), False
    last = samples[-1]
    # What the load says of itself is an objection and an excuse; other disturbances only excuse.
    own = [[why for why in sample.disturbed if why in sample.invalid] for sample in samples]
    if all(own):
        return f"the load was the limit at this level: {'; '.join(own[-1])} ({last.log})", True
    return unusable(samples), False


def unusable(samples: Sequence[Sample]) -> str:
    """Why none of these can be used."""
    if not samples:
        return "not measured"
    last = samples[-1]
    return f"none of {counted(len(samples), 'run')} can be used: {refusal(last)} ({last.log})"


def refusal(sample: Sample) -> str:
    """Why a run says nothing of a rate; empty where it does."""
    reasons = (*sample.invalid, *sample.disturbed)
    return "; ".join(dict.fromkeys(reasons)) if reasons else _starved(sample)


def _starved(sample: Sample) -> str:
    why = starved(sample)
    return f"{why}; others took {sample.others_pct:.0f} % of the server's CPUs" if why else ""


def whole_times(sample: Sample) -> Latencies:
    """Of its operations of every kind as one."""
    return Latencies.merged(sample.latencies.values())


def _cpus(sample: Sample) -> float | None:
    each_us = sample.value(CPU.name)
    busy = each_us and sample.duration_s and each_us * sample.operations / sample.duration_s / 1e6
    return busy or None


def _median(samples: Sequence[Sample], value: Callable[[Sample], float | None]) -> float | None:
    amounts = [amount for amount in map(value, samples) if amount is not None]
    return statistics.median(amounts) if amounts else None


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
    levels_known = sorted(
        (level for level in levels if level.known), key=lambda level: level.asked_per_s
    )
    if not levels_known:
        return Knee(why="no level says anything of the row")
    past = [_past(level, levels_known[0]) for level in levels_known]
    rates = [level.asked_per_s for level in levels_known]
    numbers_kept = [number for number, why in enumerate(past) if not why]
    first = next((number for number, why in enumerate(past) if why), len(past))
    last_kept = max(numbers_kept, default=-1)
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
    levels_known = (level for level in levels if level.known)
    return min(levels_known, key=lambda level: (abs(level.asked_per_s - half), level.asked_per_s))


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
            row=row,
            capacity_per_s=capacity_per_s,
            note=note,
            levels=tuple(levels),
            knee=knee,
            half=half_of(levels, knee),
        )


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
            any(level.failed for level in group) or not any(level.known for level in group)
            for group in levels
        )

    def page(self) -> Page:
        chart = levels_chart(self)
        return Page(
            title=f"{self.workload_id} under rising load",
            heading=(code(self.workload_id), " under rising load"),
            about=(self.title, measured_between(self.measured_from, self.measured_until)),
            answer=[_card(row) for row in self.rows],
            parts=(
                *([chart] if chart else []),
                note(
                    "Where levels contradict each other, the interval is wider. A level at which "
                    "the load itself was the limit counts neither for nor against a row, and so "
                    "does one at which server or load waited for a CPU that other programs had. "
                    "In the tables: operations a second as the median of the runs, and their "
                    "range. Times count from when an operation should have begun; of all runs of "
                    "a level that count together, with the lowest and highest of the runs below. "
                    "A dash stands "
                    f"where fewer than {FEWEST_SLOWER} operations took longer."
                ),
                *(
                    Section(
                        title=(key(number if number < MOST_LINES else None), row.row),
                        parts=(_table(row), *_parts(row)),
                    )
                    for number, row in enumerate(self.rows)
                ),
                self.rule,
                note(
                    f"Each level is an open loop with {self.connections} connections, at least "
                    "four times what Little's law asks, so that operations do not wait in the "
                    f"load. At least {self.asked_runs} valid runs of each row and level were asked "
                    "for; rows and levels took turns. Past the knee latency grows as long as a "
                    "run lasts."
                ),
            ),
        )


def _card(row: RowLevels) -> Card:
    reason = f" ({row.note})" if row.note else ""
    half: list[Content] = []
    if row.half:
        times = [
            f"p{percent:g} {milliseconds(reached.us)}"
            for percent in DRAWN
            if (reached := row.half.at(percent))
        ]
        where = f"half of it, measured at {significant(row.half.asked_per_s)}/s"
        half = [f"{where}: {', '.join(times)}" if times else where]
    return Card(
        headline=f"{row.row}: {row.knee}",
        parts=(f"{significant(row.capacity_per_s)}/s as answers come{reason}", *half),
    )


def _table(row: RowLevels) -> Table:
    return Table(
        kind="figures-of-levels",
        caption="Operations a second, CPUs, milliseconds from when an operation was due",
        columns=(
            "asked",
            "reached",
            "lowest to highest",
            "runs",
            "CPUs",
            *(f"p{percent:g}" for percent in IN_TABLE),
            "max",
            Column(title="p99 of a run", hint="the median of the runs' own"),
            "note",
        ),
        rows=[_line(level) for level in row.levels],
    )


def _parts(row: RowLevels) -> tuple[Table, ...]:
    places = [(significant(level.asked_per_s), level.parts) for level in row.levels]
    return parts_tables("asked", places)


def _line(level: LoadLevel) -> tuple[Content | Cell, ...]:
    low, high = level.reached_low, level.reached_high
    ends = "" if low is None or high is None else f"{significant(low)} to {significant(high)}"
    return (
        significant(level.asked_per_s),
        or_dash(level.reached_per_s),
        ends,
        str(level.runs),
        or_dash(level.cpus, "{:.2f}".format),
        *(percentile_cell(level.at(percent)) for percent in IN_TABLE),
        or_dash(level.max_us and level.max_us / 1000),
        or_dash(level.p99_us and level.p99_us / 1000),
        level.note,
    )


DRAWN = (50.0, 99.0)


def levels_chart(levels: LoadLevels) -> Chart | None:
    """Return p50 and p99 of each row over the rate; None where no level has a percentile."""
    rows = levels.rows[:MOST_LINES]
    lines = [
        line
        for number, row in enumerate(rows)
        for percent in DRAWN
        if (line := _chart_line(row, number, percent)).points
    ]
    if not lines:
        return None
    left_out = len(levels.rows) - len(rows)
    highest = 1.04 * max(level.asked_per_s for row in rows for level in row.levels)
    return line_chart(
        title=f"Latency over the rate, {levels.workload_id}",
        description="; ".join(f"{row.row}: {row.knee}" for row in rows),
        caption="p50 (thin) and p99 (thick) of each row over the rate that was asked. The broad "
        f"band is where the knee lies.{f' Not drawn: {left_out}.' if left_out else ''}",
        kind="levels",
        across=even_axis(highest, significant, "operations a second that were asked"),
        up=_time_axis([time_us for line in lines for _, time_us in line.points]),
        lines=lines,
    )


def _time_axis(times_us: Sequence[float]) -> Axis:
    return log_axis(times_us, lambda time_us: f"{time_us / 1000:g} ms")


def _chart_line(row: RowLevels, number: int, percent: float) -> ChartLine:
    """One percentile over the levels; the knee is from the last level before it to the next."""
    rates = {
        level.asked_per_s: reached.us for level in row.levels if (reached := level.at(percent))
    }
    low, high = row.knee.above_per_s or 0.0, row.knee.at_most_per_s
    within = [] if high is None else [rate for rate in rates if low <= rate <= high]
    upper = percent == DRAWN[-1]
    return ChartLine(
        name=short_name(row.row) if upper else f"p{percent:g}",
        title=f"{row.row}, p{percent:g}; {row.knee}",
        points=list(rates.items()),
        pattern=number,
        dots=True,
        marked=[(rate, rates[rate]) for rate in within] if upper else [],
        kind="" if upper else "typical",
    )
