"""`sizes`: how what an operation costs grows with the size of the directory."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    Keep,
    MatrixFile,
    MetricName,
    Relock,
    ReportFolder,
    SettingsId,
    StorePlace,
)
from dsbisect.cli.page_answer import tell_answer
from dsharness.errors import UsageError

FEWEST_SIZES, MOST_SIZES = 2, 10
DEFAULT_SIZES = "1000,10000,100000"


def sizes(  # noqa: PLR0913 - each is an option
    rows: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW...",
            help="Rows to measure: `dsbisect matrix show` lists them. The others are compared with "
            "the first.",
            show_default=False,
        ),
    ],
    *,
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A workload on a directory's users, or a YAML file with one.",
            show_default=False,
        ),
    ],
    users: Annotated[
        str,
        typer.Option("--sizes", metavar="N,...", help="Users of the directory, up to 9999999."),
    ] = DEFAULT_SIZES,
    metric: MetricName = DEFAULT_METRIC,
    runs: Annotated[
        int, typer.Option("--runs", min=2, max=100, help="Valid runs of each row and size.")
    ] = 5,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Measure rows on directories of several sizes: how their cost grows, and whose grows more.

    Example: dsbisect sizes debian-12 debian-13 --workload search-candidates

    Example: dsbisect sizes debian-13 --workload search-values --sizes 1000,30000 --metric memory
    """
    from dsbisect.cli.search_progress import WatchOfLabs
    from dsbisect.sizes_study import SizesRequest, measure_sizes
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dsharness.model import DirectoryWorkload
    from dslab.candidates import check_loads
    from dsresults.page.page_files import write_answer
    from dsresults.report.report_source import default_folder
    from dsresults.store import Store

    counts = _counts(users)
    if re.search(r"@[0-9]+$", workload):
        raise UsageError(
            f"--workload {workload} has a size of its own",
            hint=f"name it without one; the sizes are those of --sizes {users}",
        )
    checked = load_matrix(matrix)
    known = tuple(find_row(checked, name) for name in dict.fromkeys(rows))
    load = find_workload(checked, workload)
    if not isinstance(load, DirectoryWorkload):
        fit = (each.id for each in checked.workloads if isinstance(each, DirectoryWorkload))
        raise UsageError(
            f"--workload {workload} is no load on a directory's users",
            hint=f"one of {', '.join(fit)}",
        )
    sized = tuple(find_workload(checked, f"{workload}@{count}") for count in counts)
    request = SizesRequest(
        matrix=checked,
        rows=tuple(row.id for row in known),
        load=load,
        workloads=sized,
        settings=find_settings(checked, settings_id),
        metric=metric,
        runs=runs,
        relock=relock,
        keep=keep,
    )
    request.sized  # noqa: B018 - a metric that says nothing is reported before anything is started
    check_rows(checked, known)
    check_loads(checked, known, (load,), request.settings)
    engine = detect()
    with Store.open(store) as opened, WatchOfLabs() as watch:
        found = measure_sizes(request, engine, opened, watch)
    page = write_answer(output or default_folder(f"{found.workload_id}-sizes"), "sizes", found)
    tell_answer(found, page, as_json=as_json)


def _counts(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them, each once and in order."""
    hint = f"write {FEWEST_SIZES} to {MOST_SIZES} whole numbers, such as --sizes {DEFAULT_SIZES}"
    words = text.split(",")
    for word in words:
        if not re.fullmatch(r"\s*[1-9][0-9]{0,6}\s*", word):
            raise UsageError(f"--sizes {text}: {word.strip()!r} is no number of users", hint=hint)
    found = tuple(sorted({int(word) for word in words}))
    if not FEWEST_SIZES <= len(found) <= MOST_SIZES:
        raise UsageError(f"--sizes {text}: growth is over 2 to {MOST_SIZES} sizes", hint=hint)
    return found
