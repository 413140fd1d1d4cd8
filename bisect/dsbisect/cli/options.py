"""Options that several commands share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

MatrixFile = Annotated[
    Path | None,
    typer.Option(
        "--matrix",
        help="The matrix to use. Default: $DSBISECT_MATRIX, ./matrix.yaml, the embedded one.",
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
ArmId = Annotated[str, typer.Option("--arm", help="Settings of the server, by id.")]
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
