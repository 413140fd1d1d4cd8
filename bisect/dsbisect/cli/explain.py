"""`explain`: what of a difference between two rows comes from which factor."""

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
    WorkloadIds,
    given_command,
)


def explain(  # noqa: PLR0913 - each is an option
    fast: Annotated[str, typer.Argument(help="The row to start from.", show_default=False)],
    slow: Annotated[str, typer.Argument(help="The row that differs.", show_default=False)],
    *,
    workload: WorkloadIds = None,
    runs: Annotated[
        int, typer.Option("--runs", min=3, max=1000, help="Of each arm that shall count.")
    ] = 8,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    relock: Relock = False,
    keep: Keep = False,
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Also compare CPU time and instructions by function, and the server's log.",
        ),
    ] = False,
    output: ReportFolder = None,
    as_json: AsJson = False,
) -> None:
    """Attribute a difference between two rows to what can be changed alone.

    Each arm is one row's server, with what the other one stores where both can hold it. All are
    measured in turn; stored runs count, and a larger --runs adds to them.

    Example: dsbisect explain debian-12 debian-13 --workload bind-one --runs 8
    """
    from dsbisect.cli.search_progress import Watch
    from dsbisect.explain_study import ExplainRequest, common_parts, explain_difference
    from dsbisect.rows_study import check_asked
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dslab.lab_conditions import default_workloads
    from dsresults.page.page_files import write_page
    from dsresults.page.page_text import text_of
    from dsresults.profile_pair import stored_profiles
    from dsresults.report import default_folder
    from dsresults.store import Store

    checked = load_matrix(matrix)
    rows = find_row(checked, fast), find_row(checked, slow)
    workloads = tuple(find_workload(checked, name) for name in dict.fromkeys(workload or ()))
    request = ExplainRequest(
        matrix=checked,
        workloads=workloads or default_workloads(checked, [row.system for row in rows]),
        settings=find_settings(checked, settings_id),
        fast=fast,
        slow=slow,
        runs=runs,
        relock=relock,
        keep=keep,
        profile=profile,
        command=given_command(),
    )
    common_parts(request)
    check_asked(request, (fast, slow))
    engine = detect()
    with Store.open(store) as opened, Watch() as watch:
        found = explain_difference(request, engine, opened, watch)
        profiles = stored_profiles(opened, (each.campaign for each in found.workloads))
    folder = output or default_folder(f"{fast}-{slow}-explained")
    page = write_page(folder, "explanation", found.page(profiles), found)
    text = f"{text_of(found.page())}\n\n{page}"
    typer.echo(found.model_dump_json(indent=2) if as_json else text)
