"""`measure`: some samples of one row, or of a directory by its address.

Of a directory that someone else runs, less can be measured than of a row.
"""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    refuse,
)
from dsharness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from dsharness.measure.by_address import AddressRequest, AddressResult
    from dsharness.model import Matrix, Sample
    from dsharness.systems.ldap.directory import LdapUser


BY_ADDRESS = "A directory by its address"
PASSWORD_VARIABLE = "DSBISECT_BIND_PASSWORD"  # noqa: S105 - where one is, not one
Address = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="ldap://HOST:PORT, instead of a row.",
        rich_help_panel=BY_ADDRESS,
    ),
]
UsersFile = Annotated[
    Path | None,
    typer.Option(
        "--users-file",
        help="Who binds: DN, tab, password on each line.",
        rich_help_panel=BY_ADDRESS,
    ),
]
BindDn = Annotated[
    str | None,
    typer.Option("--bind-dn", help="Who binds, if only one does.", rich_help_panel=BY_ADDRESS),
]
PasswordFile = Annotated[
    Path | None,
    typer.Option(
        "--password-file",
        help="The password of --bind-dn. Default: $DSBISECT_BIND_PASSWORD.",
        rich_help_panel=BY_ADDRESS,
    ),
]
LoadNetwork = Annotated[
    str | None,
    typer.Option(
        "--network",
        help="Of the load: host, container:NAME or a podman network. Default: host for a "
        "loopback address, else podman's default.",
        rich_help_panel=BY_ADDRESS,
    ),
]
BindsOfARun = Annotated[
    int,
    typer.Option(
        "--operations", min=1, max=100_000, help="Binds of a run.", rich_help_panel=BY_ADDRESS
    ),
]
Connections = Annotated[
    int,
    typer.Option(
        "--threads", min=1, max=64, help="Connections at once.", rich_help_panel=BY_ADDRESS
    ),
]
LimitOfAll = Annotated[
    float,
    typer.Option(
        "--limit",
        min=1,
        max=3600,
        help="Seconds that all runs may take.",
        rich_help_panel=BY_ADDRESS,
    ),
]


@dataclass(frozen=True, kw_only=True)
class AddressOptions:
    """What the command line says of a directory by its address."""

    address: str
    users: Path | None
    bind_dn: str | None
    password_file: Path | None
    network: str | None
    runs: int
    operations: int
    threads: int
    limit_s: float


def measure_by_address(
    options: AddressOptions, matrix: Path | None, *, keep: bool, as_json: bool
) -> None:
    """Print what is asked for, do it, and print the result."""
    from dsbisect.cli.shown_output import shown_console
    from dsharness.matrix import load_matrix

    request = request_of(options)
    result = _run(load_matrix(matrix), request, keep=keep)
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
        return
    console = shown_console()
    for part in shown(result):
        console.print(part)


def request_of(options: AddressOptions) -> AddressRequest:
    """What will be done; UsageError for what cannot be meant."""
    from dsharness.measure.by_address import AddressRequest, checked_network, network_for
    from dsharness.systems.ldap.address import parse_address

    address = parse_address(options.address)
    return AddressRequest(
        address=address,
        users=_users(options),
        network=network_for(address, checked_network(options.network)),
        runs=options.runs,
        operations=options.operations,
        threads=options.threads,
        limit_s=options.limit_s,
    )


def _run(matrix: Matrix, request: AddressRequest, *, keep: bool) -> AddressResult:
    from dsbisect.cli.shown_output import shown_console
    from dsbuilds.built_row import load_image
    from dsharness.containers.engine_probe import detect
    from dsharness.measure.by_address import measure_address

    console = shown_console(stderr=True, highlight=False)

    def show(news: str) -> None:
        console.print(news, markup=False, soft_wrap=True)

    engine = detect()
    image = load_image(engine, matrix, request.workload.tool, progress=show)
    show(str(request))
    return measure_address(engine, image, request, show, keep=keep)


def shown(result: AddressResult) -> Iterator[RenderableType]:
    """The result as text: the figures, then what stays unknown."""
    from rich.markup import escape
    from rich.table import Table

    table = Table("run", "binds", "s", "binds/s", "ms/bind", "")
    for number, run in enumerate(result.runs, start=1):
        table.add_row(
            str(number),
            str(run.operations),
            f"{run.duration_s:.2f}",
            f"{run.rate_per_s:.0f}",
            f"{run.latency_us / 1000:.3g}",
            "the load had no CPU left" if run.load_bound else "",
        )
    yield table
    yield (
        f"[bold]{escape(result.address)}[/]: {result.rate_per_s:.0f} binds/s, "
        f"{result.latency_us / 1000:.3g} ms each on {result.threads} connections (medians)"
    )
    for name, value in result.facts.items():
        yield f"it says: {escape(name)} {escape(str(value))}"
    if result.stopped:
        yield f"fewer runs than planned: {escape(result.stopped)}"
    yield "not known:"
    for what, why in result.unknown.items():
        yield f"- {escape(what)}: {escape(why)}"
    yield "Nothing was stored: a figure without the server's CPU time is not compared with rows."


def _users(options: AddressOptions) -> tuple[LdapUser, ...]:
    from dsharness.systems.ldap.address import checked_user, read_users

    if (options.users is None) == (options.bind_dn is None):
        raise UsageError(
            "--address needs to know who binds: either --users-file or --bind-dn",
            hint="--users-file FILE has a DN, a tab and a password on each line; --bind-dn DN "
            f"takes its password from --password-file or ${PASSWORD_VARIABLE}",
        )
    if options.users is not None:
        if options.password_file is not None:
            raise UsageError("--password-file belongs to --bind-dn; --users-file has the passwords")
        return read_users(options.users)
    password, where = _password(options.password_file)
    return (checked_user(options.bind_dn or "", password, f"--bind-dn and {where}"),)


def _password(file: Path | None) -> tuple[str, str]:
    from dsharness.guarded_files import given_input

    if file is None:
        if PASSWORD_VARIABLE not in os.environ:
            raise UsageError(
                "--bind-dn needs a password",
                hint=f"--password-file FILE, or set ${PASSWORD_VARIABLE}; the command line would "
                "show it to everyone on this machine",
            )
        return os.environ[PASSWORD_VARIABLE], f"${PASSWORD_VARIABLE}"
    try:
        text = given_input(str(file.absolute())).decode("utf-8")  # a file or a pipe, never endless
        return text.removesuffix("\n"), f"--password-file {file}"
    except UnicodeDecodeError as error:
        raise UsageError(f"--password-file {file}: it is not text in UTF-8") from error
    except OSError as error:
        raise UsageError(f"--password-file {file}: {error.strerror}") from error


def measure(  # noqa: PLR0913 - each is an option
    row: Annotated[
        str | None,
        typer.Argument(
            metavar="ROW", help="Row to measure: `dsbisect list rows` has all.", show_default=False
        ),
    ] = None,
    *,
    workload: WorkloadIds = None,
    runs: Annotated[
        int, typer.Option("--runs", min=1, max=1000, help="Runs of each workload.")
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
    """Measure a row, or a directory by its address; with commands below it.

    Example: dsbisect measure debian-12 --workload bind-one --runs 10 --settings ssha512

    Example: dsbisect measure --address ldap://127.0.0.1:3389 --users-file users.tsv --json
    """
    from dsbisect.cli.shown_output import shown_console

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
            runs=runs,
            operations=operations,
            threads=threads,
            limit_s=limit_s,
        )
        measure_by_address(options, matrix, keep=keep, as_json=as_json)
        return
    refuse(
        "needs --address",
        {
            "--users-file": users,
            "--bind-dn": bind_dn,
            "--password-file": password_file,
            "--network": network,
        },
    )
    if row is None:
        raise UsageError(
            "nothing is named that could be measured",
            hint="name a row (`dsbisect list rows` has all), or --address ldap://HOST:PORT",
        )

    from dsbisect.cli.study_command import Circumstances, this_machine
    from dsbisect.measure_study import RowRuns
    from dsbisect.study_lab import Scene
    from dsharness.matrix import load_matrix

    scene = Scene(matrix=load_matrix(matrix))
    study = RowRuns(row=row, workload=tuple(workload or ()), runs=runs, settings=settings_id)
    scene.refuse_impossible(study)
    with this_machine(scene, Circumstances(store=store, relock=relock, keep=keep)) as lab:
        row_samples = study.play(lab)
    if as_json:
        typer.echo(json.dumps([sample.model_dump(mode="json") for sample in row_samples], indent=2))
    else:
        shown_console().print(_table(row_samples))
    if not any(sample.valid for sample in row_samples):
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
