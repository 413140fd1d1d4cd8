"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsbisect.search_options import SearchName

MatrixFile = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        help="The matrix to use. Default: $DSBISECT_MATRIX, ./matrix.yaml, the embedded one.",
        show_default=False,
    ),
]
OutsideMatrix = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        help="The matrix to use. Default: $DSBISECT_MATRIX, the embedded one; never ./matrix.yaml, "
        "which may be the commit's.",
        show_default=False,
    ),
]
StorePlace = Annotated[
    str | None,
    typer.Option(
        "--store",
        help="Database file or SQLAlchemy URL. Default: $DSBISECT_STORE, results/dsbisect.db.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
SettingsId = Annotated[str, typer.Option("--settings", help="Settings of the server, by id.")]
Keep = Annotated[
    bool, typer.Option("--keep", help="Leave containers behind for a look; `clean` removes them.")
]
Relock = Annotated[
    bool, typer.Option("--relock", help="Accept packages that drifted from matrix.lock.")
]
ReportFolder = Annotated[
    Path | None,
    typer.Option("--output", help="Folder for the report. Default: results/runs/TIME-SERIES."),
]
SearchRule = Annotated[
    SearchName,
    typer.Option("--search", help="statistical: weighs every run; plain: halves by thresholds."),
]
Level = Annotated[
    float, typer.Option("--level", help="How sure the answer must be: a chance below 1.")
]
MostRuns = Annotated[int, typer.Option("--most-runs", help="Give the best answer after so many.")]
MostBuilds = Annotated[
    int | None,
    typer.Option("--most-builds", help="Measure no more candidates than that.", show_default=False),
]
MostHours = Annotated[
    float | None,
    typer.Option("--most-hours", help="Give the best answer after so long.", show_default=False),
]
EventLines = Annotated[
    bool,
    typer.Option("--events", help="Tell what happens as JSON lines on standard error."),
]


def outside(repo: str) -> bool:
    """Whether the working directory is none of a repository's own: there, files are commits'."""
    path = Path(repo).expanduser()
    return not path.is_dir() or not Path.cwd().is_relative_to(path.resolve())
