"""`endurance`: whether a row bears load for a long time, and what changes meanwhile."""

from __future__ import annotations

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
    from dsbisect.endurance_study import PhaseAsked

MOST_PHASES = 20


def endurance(  # noqa: PLR0913 - each is an option
    row: Annotated[
        str,
        typer.Argument(
            metavar="ROW",
            help="Row to measure: `dsbisect matrix show` lists them.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A workload of ldapload that only reads, or a YAML file with one.",
            show_default=False,
        ),
    ],
    minutes: Annotated[
        float,
        typer.Option("--minutes", min=1, max=10_080, help="All phases together; 480: 8 hours."),
    ] = 5.0,
    phases: Annotated[
        str | None,
        typer.Option(
            "--phases",
            metavar="PCT:PART,...",
            help="Per cent of the top rate, and the part of the time, of each phase. Default: "
            "100:60,67:30,33:300,100:60,67:30, as published.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        float | None,
        typer.Option(
            "--top",
            min=1,
            max=100,
            help="The top rate, in per cent of what the row answers. Default: 60.",
            show_default=False,
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            min=0.1,
            max=100_000,
            help="The top rate in operations a second, not --top.",
            show_default=False,
        ),
    ] = None,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Load a row for a long time in phases: no operation may fail; drifts of latency and memory.

    Example: dsbisect endurance debian-12 --workload search-as-user

    Example: dsbisect endurance debian-13 --workload session --minutes 480 --top 80
    """  # fmt: skip
    from dsbisect.cli.search_progress import Watch
    from dsbisect.endurance_study import (
        PHASES,
        TOP_PCT,
        EnduranceRequest,
        PhaseAsked,
        measure_endurance,
    )
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dslab.candidates import check_loads
    from dsresults.page.page_files import write_answer
    from dsresults.report.report_source import default_folder
    from dsresults.store import Store

    if top is not None and rate is not None:
        raise UsageError(
            "--top and --rate: one of them is too much",
            hint="--top takes per cent of what the row answers, --rate operations a second",
        )
    checked = load_matrix(matrix)
    known = find_row(checked, row)
    usual = tuple(PhaseAsked(share_pct=share, part=part) for share, part in PHASES)
    request = EnduranceRequest(
        matrix=checked,
        row=known.id,
        workloads=(find_workload(checked, workload),),
        settings=find_settings(checked, settings_id),
        minutes=minutes,
        phases=usual if phases is None else _phases(phases),
        top_pct=TOP_PCT if top is None else top,
        rate=rate,
        relock=relock,
        keep=keep,
    )
    request.load  # noqa: B018 - one that cannot be taken is reported before anything is started
    check_rows(checked, (known,))
    check_loads(checked, (known,), request.workloads, request.settings)
    engine = detect()
    with Store.open(store) as opened, Watch() as watch:
        found = measure_endurance(request, engine, opened, watch)
    page = write_answer(
        output or default_folder(f"{found.workload_id}-endurance"), "endurance", found
    )
    tell_answer(found, page, as_json=as_json)


def _phases(text: str) -> tuple[PhaseAsked, ...]:
    """Shares from 1 to 100 % with their parts; UsageError for anything else."""
    from dsbisect.endurance_study import PhaseAsked

    hint = f"write up to {MOST_PHASES} pairs of numbers, such as --phases 100:1,50:4,100:1"
    try:
        pairs = [[float(number) for number in word.split(":")] for word in text.split(",")]
        found = [PhaseAsked(share_pct=share, part=part) for share, part in pairs]
    except ValueError as error:
        raise UsageError(f"--phases {text}: not pairs of numbers", hint=hint) from error
    for phase in found:
        if not (1 <= phase.share_pct <= 100 and 0 < phase.part < 1e6):
            wrong = f"{phase.share_pct:g}:{phase.part:g}"
            raise UsageError(f"--phases {text}: {wrong} is no phase", hint=hint)
    if len(found) > MOST_PHASES:
        raise UsageError(f"--phases: {len(found)} phases are too many", hint=hint)
    return tuple(found)
