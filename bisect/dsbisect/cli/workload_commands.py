"""`workload`: a workload's file is made from a recorded access log."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, cast

import typer

from dsbisect.cli.common_options import AsJson

if TYPE_CHECKING:
    from dsharness.model import Workload


class RecordedLoad(Protocol):
    """What a product reads from its server's logs."""

    @property
    def workload(self) -> Workload: ...
    @property
    def operations(self) -> int: ...
    @property
    def unread(self) -> int: ...
    @property
    def left_out(self) -> dict[str, int]: ...
    @property
    def per_second(self) -> float: ...
    @property
    def left_out_lines(self) -> list[str]: ...
    @property
    def text(self) -> str: ...


app = typer.Typer(no_args_is_help=True, help="Make a workload's file from a recorded access log.")


@app.callback()
def workload() -> None:
    """Make a workload's file from a recorded access log."""


@app.command("from-log")
def from_log(
    logs: Annotated[
        list[Path], typer.Argument(help="Access logs of a server, in any order; .gz too.")
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", help="Write it there instead of printing it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a workload like a server's access log; no name or value of the log is kept.

    Example: dsbisect workload from-log access access.2026* --output mine.yaml
    """
    from dsharness.process.command import atomic_write
    from dsharness.product_folder import parts_of_products

    (loads_of,) = cast(
        "list[Callable[[list[Path]], RecordedLoad]]", parts_of_products("recorded_load")
    )
    load = loads_of(logs)
    if output is not None:
        atomic_write(output, load.text)
    if as_json:
        document = {
            "operations": load.operations,
            "unread_lines": load.unread,
            "left_out": load.left_out,
            "per_second": load.per_second,
            "workload": load.workload.model_dump(mode="json"),
        }
        typer.echo(json.dumps(document, indent=2))
        return
    if output is None:
        typer.echo(load.text, nl=False)
    else:
        typer.echo(f"wrote {output}: {load.operations} operations")
        for line in load.left_out_lines:
            typer.echo(line)
    if load.unread:
        typer.echo(f"{load.unread} lines could not be read", err=True)
