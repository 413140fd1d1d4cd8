"""`levels`: how rows answer while the load on them rises, and where they stop to keep up."""

from __future__ import annotations

from typing import Annotated

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
    from dsresults.page.page_files import write_answer
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
    page = write_answer(output or default_folder(f"{found.workload_id}-levels"), "levels", found)
    tell_answer(found, page, as_json=as_json)


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
