"""`measure`: some samples of one row, or of a directory by its address."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    AsJson,
    Keep,
    MatrixFile,
    Relock,
    SettingsId,
    StorePlace,
    WorkloadIds,
)
from dsbisect.cli.measure_address import (
    Address,
    AddressOptions,
    BindDn,
    BindsOfARun,
    Connections,
    LimitOfAll,
    LoadNetwork,
    PasswordFile,
    UsersFile,
    measure_by_address,
    refuse,
)
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
    workload: WorkloadIds = None,
    samples: Annotated[
        int, typer.Option("--samples", min=1, max=1000, help="Runs of each workload.")
    ] = 5,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    store: StorePlace = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
    address: Address = None,
    users: UsersFile = None,
    bind_dn: BindDn = None,
    password_file: PasswordFile = None,
    network: LoadNetwork = None,
    operations: BindsOfARun = 200,
    threads: Connections = 4,
    limit_s: LimitOfAll = 60,
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
