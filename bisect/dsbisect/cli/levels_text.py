"""An answer to `levels` as text."""

from __future__ import annotations

from collections.abc import Iterator

from dsresults.compare.latency_curves import IN_TABLE
from dsresults.compare.load_levels import LoadLevel, LoadLevels
from dsresults.number_text import significant

COLUMNS = "{:>8}{:>9}{:>19}{:>6}{:>6}" + 6 * "{:>8}"


def told_levels(found: LoadLevels) -> Iterator[str]:
    """A table for each row, its knee, half of it, and the rule."""
    yield f"{found.workload_id}: {found.title}; {found.connections} connections"
    yield "operations a second, CPUs busy, ms from when an operation was due"
    for row in found.rows:
        note = f" ({row.note})" if row.note else ""
        yield f"\n{row.row}: {significant(row.capacity_per_s)}/s as answers come{note}"
        yield COLUMNS.format(
            "asked", "reached", "lowest to highest", "runs", "CPUs", "p50", "p90", "p99", "p99.9",
            "max", "run's",
        )  # fmt: skip
        yield from map(_line, row.levels)
        yield f"{row.row}: {row.knee}"
        if row.half:
            p50, p99 = _times(row.half, (50.0, 99.0))
            where = significant(row.half.asked_per_s)
            yield f"half of it, measured at {where}/s: p50 {p50} ms, p99 {p99} ms"
    yield f"\n{found.rule} The last column is that median of p99."


def _line(level: LoadLevel) -> str:
    asked = significant(level.asked_per_s)
    if level.reached_per_s is None:
        return f"{asked:>8}  {level.note}"
    low, high = level.reached_low or 0.0, level.reached_high or 0.0
    cpus = "-" if level.cpus is None else f"{level.cpus:.2f}"
    line = COLUMNS.format(
        asked, significant(level.reached_per_s), f"{significant(low)} to {significant(high)}",
        level.runs, cpus, *_times(level, IN_TABLE), _ms(level.max_us), _ms(level.p99_us),
    )  # fmt: skip
    return f"{line}  {level.note}" if level.note else line


def _times(level: LoadLevel, percents: tuple[float, ...]) -> list[str]:
    return [_ms(each.us if each else None) for each in map(level.at, percents)]


def _ms(us: float | None) -> str:
    return "-" if us is None else significant(us / 1000)
