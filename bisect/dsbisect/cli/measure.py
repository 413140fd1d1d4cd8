"""`measure`: some samples of one row, or of a directory by its address."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, Keep, MatrixFile, Relock, SettingsId, StorePlace
from dsbisect.cli.measure_address import BY_ADDRESS, AddressOptions, measure_by_address, refuse
from dsharness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from dsharness.model import Sample


def measure(  # noqa: PLR0913 - each is an option
    row: Annotated[
        str | None,
        typer.Argument(
            help="Row to measure: `dsbisect matrix show` lists them.", show_default=False
        ),
    ] = None,
    *,
    workload: Annotated[
        list[str] | None, typer.Option("--workload", help="Repeatable. Default: the matrix's.")
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, max=1000, help="Runs of each workload.")
    ] = 5,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
    address: Annotated[
        str | None,
        typer.Option(
            "--address",
            help="ldap://HOST:PORT, instead of a row.",
            rich_help_panel=BY_ADDRESS,
        ),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            "--users",
            help="Who binds: DN, tab, password on each line.",
            rich_help_panel=BY_ADDRESS,
        ),
    ] = None,
    bind_dn: Annotated[
        str | None,
        typer.Option("--bind-dn", help="Who binds, if only one does.", rich_help_panel=BY_ADDRESS),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            help="The password of --bind-dn. Default: $DSBISECT_BIND_PASSWORD.",
            rich_help_panel=BY_ADDRESS,
        ),
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            "--network",
            help="Of the load: host, container:NAME or a podman network. Default: host for a "
            "loopback address, else podman's default.",
            rich_help_panel=BY_ADDRESS,
        ),
    ] = None,
    operations: Annotated[
        int,
        typer.Option(
            "--operations", min=1, max=100_000, help="Binds of a run.", rich_help_panel=BY_ADDRESS
        ),
    ] = 200,
    threads: Annotated[
        int,
        typer.Option(
            "--threads", min=1, max=64, help="Connections at once.", rich_help_panel=BY_ADDRESS
        ),
    ] = 4,
    limit_s: Annotated[
        float,
        typer.Option(
            "--limit",
            min=1,
            max=3600,
            help="Seconds that all runs may take.",
            rich_help_panel=BY_ADDRESS,
        ),
    ] = 60,
) -> None:
    """Build, serve and measure one row, or measure a directory by its address.

    Example: dsbisect measure debian-12 --workload bind-one --samples 10 --settings ssha512

    Example: dsbisect measure --address ldap://127.0.0.1:3389 --users users.tsv --json
    """
    from rich.console import Console

    if address is not None:
        refuse(
            "is of no use with --address",
            {"ROW": row, "--workload": workload, "--store": store, "--relock": relock},
        )
        options = AddressOptions(
            address=address,
            users=users,
            bind_dn=bind_dn,
            password_file=password_file,
            network=network,
            runs=samples,
            operations=operations,
            threads=threads,
            limit_s=limit_s,
        )
        measure_by_address(options, matrix, keep=keep, as_json=as_json)
        return
    refuse(
        "needs --address",
        {
            "--users": users,
            "--bind-dn": bind_dn,
            "--password-file": password_file,
            "--network": network,
        },
    )
    if row is None:
        raise UsageError(
            "nothing is named that could be measured",
            hint="name a row (`dsbisect matrix show` lists them), or --address ldap://HOST:PORT",
        )

    from dsbisect.cli.progress_terminal import Watch
    from dsbisect.rows.rows_study import MeasureRequest, measure_row
    from dsbuilds.build_request import check_rows
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, find_workload, load_matrix
    from dslab.lab_conditions import default_workloads
    from dsresults.store import Store

    checked = load_matrix(matrix)
    known = find_row(checked, row)
    workloads = tuple(find_workload(checked, name) for name in workload or ())
    look = MeasureRequest(
        matrix=checked,
        row=row,
        workloads=workloads or default_workloads(checked, [known.system]),
        settings=find_settings(checked, settings_id),
        samples=samples,
        relock=relock,
        keep=keep,
    )
    check_rows(checked, (known,))
    engine = detect()
    with Store.open(store) as opened, Watch() as watch:
        taken = measure_row(look, engine, opened, watch)
    if as_json:
        typer.echo(json.dumps([sample.model_dump(mode="json") for sample in taken], indent=2))
    else:
        Console().print(_table(taken))
    if not any(sample.valid for sample in taken):
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _table(samples: Sequence[Sample]) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from dsharness.measure.metrics import COST, CPU, RATE

    table = Table("workload", "usable", "operations/s", "CPU ms each", "÷ calibrator", "it says")
    for workload in dict.fromkeys(sample.workload_id for sample in samples):
        group = [sample for sample in samples if sample.workload_id == workload]
        valid = [sample for sample in group if sample.valid]
        facts = valid[0].facts if valid else {}
        table.add_row(
            workload,
            f"{len(valid)} of {len(group)}",
            _middle([sample.value(RATE.name) or 0 for sample in valid], "{:.0f}"),
            _middle([(sample.value(CPU.name) or 0) / 1000 for sample in valid], "{:.3g}"),
            _middle([sample.value(COST.name) or 0 for sample in valid], "{:.3g}"),
            escape(", ".join(f"{name} {fact}" for name, fact in facts.items())),
        )
    return table


def _middle(values: Sequence[float], form: str) -> str:
    return form.format(statistics.median(values)) if values else "-"
