"""`levels`: how rows answer while the load on them rises, and where they stop to keep up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    AsJson,
    Keep,
    MatrixFile,
    Relock,
    ReportFolder,
    SettingsId,
    StorePlace,
)
from dsbisect.cli.page_answer import tell_answer
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsresults.compare.load_levels import LoadLevel, LoadLevels

MOST_LEVELS = 20
LEAST_RATE, MOST_RATE = 0.1, 100_000.0
LEAST_PCT, MOST_PCT = 1.0, 200.0  # above, a run could not end in time


def levels(  # noqa: PLR0913 - each is an option
    rows: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW...",
            help="Rows to measure: `dsbisect matrix show` lists them.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A workload of ldapload, or a YAML file with one; W@N: with N users.",
            show_default=False,
        ),
    ],
    shares: Annotated[
        str | None,
        typer.Option(
            "--levels",
            metavar="PCT,...",
            help="Levels, in per cent of what the slowest row answers. Default: "
            "25,50,75,90,100,110.",
            show_default=False,
        ),
    ] = None,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="N,...",
            help="Levels in operations a second, instead of --levels.",
            show_default=False,
        ),
    ] = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=100, help="Valid runs of each row and level.")
    ] = 5,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Measure rows under rising load: latency and rate of each level, and the knee.

    Example: dsbisect levels debian-12 debian-13 --workload search-as-user --levels 50,90,110

    Example: dsbisect levels debian-12 --workload search-as-user --rates 600,1200,1800 --json
    """  # fmt: skip
    from dsbisect.capacity import closed_loop
    from dsbisect.cli.search_progress import Watch
    from dsbisect.levels_study import SHARES_PCT, LevelsRequest, measure_levels
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dslab.candidates import check_loads
    from dsresults.report.levels_page import write_levels
    from dsresults.report.report_source import default_folder
    from dsresults.store import Store

    if shares is not None and rates is not None:
        raise UsageError(
            "--levels and --rates: one of them is too much",
            hint="--levels takes per cent of the capacity, --rates operations a second",
        )
    pct = _numbers("--levels", shares, LEAST_PCT, MOST_PCT) if shares is not None else SHARES_PCT
    fixed = _numbers("--rates", rates, LEAST_RATE, MOST_RATE) if rates is not None else ()
    checked = load_matrix(matrix)
    known = tuple(find_row(checked, name) for name in dict.fromkeys(rows))
    load = find_workload(checked, workload)
    closed_loop(load)
    request = LevelsRequest(
        matrix=checked,
        rows=tuple(row.id for row in known),
        workloads=(load,),
        settings=find_settings(checked, settings_id),
        shares_pct=pct,
        rates=fixed,
        runs=runs,
        relock=relock,
        keep=keep,
    )
    check_rows(checked, known)
    check_loads(checked, known, request.workloads, request.settings)
    engine = detect()
    with Store.open(store) as opened, Watch() as watch:
        found = measure_levels(request, engine, opened, watch)
    page = write_levels(output or default_folder(f"{found.workload_id}-levels"), found)
    tell_answer(found, told(found), page, as_json=as_json)


def _numbers(option: str, text: str, least: float, most: float) -> tuple[float, ...]:
    """Numbers with commas between them, each once and in order."""
    hint = f"write up to {MOST_LEVELS} numbers from {least:g} to {most:g}, such as {option} 50,90"
    try:
        found = sorted({float(word) for word in text.split(",")})
    except ValueError as error:
        raise UsageError(f"{option} {text}: not numbers with commas between", hint=hint) from error
    for number in found:
        if not least <= number <= most:
            raise UsageError(f"{option} {text}: {number:g} is no level", hint=hint)
    if len(found) > MOST_LEVELS:
        raise UsageError(f"{option}: {len(found)} levels are too many", hint=hint)
    return tuple(found)


COLUMNS = "{:>8}{:>9}{:>19}{:>6}{:>6}" + 6 * "{:>8}"


def told(found: LoadLevels) -> Iterator[str]:
    """A table for each row, its knee, half of it, and the rule."""
    from dsresults.number_text import significant

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
    from dsresults.compare.latency_curves import IN_TABLE
    from dsresults.number_text import significant

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
    from dsresults.number_text import significant

    return "-" if us is None else significant(us / 1000)
