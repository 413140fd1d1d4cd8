"""`load`: workers of the lab's own load on one server, to look at on Locust's page or to judge by.

A server that someone else runs is asked for binds only, never faster than was said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, Keep, MatrixFile, Relock, SettingsId, refuse
from dsbisect.cli.measure import (
    AddressOptions,
    BindDn,
    LoadNetwork,
    PasswordFile,
    UsersFile,
    request_of,
)
from dsharness.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from dsharness.measure.by_address import AddressRequest
    from dsharness.model import LdaploadWorkload, Matrix, Workload

USUAL_CONNECTIONS = 4
OF_ADDRESS = ("--users-file", "--bind-dn", "--password-file", "--network", "--yes")
# Of a server of others, by all workers together.
MOST_BINDS_PER_S, MOST_MINUTES, MOST_CONNECTIONS = 2000.0, 60.0, 1000


def load(  # noqa: PLR0913 - each is an option
    target: Annotated[
        str,
        typer.Argument(
            metavar="ROW|ADDRESS",
            help="A row of the matrix, or ldap://HOST:PORT.",
            show_default=False,
        ),
    ],
    *,
    gui: Annotated[
        bool, typer.Option("--gui", help="Show it on Locust's page, on this machine only.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=1, max=65535, help="Of the page. Default: a free one.", show_default=False
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=20, help="Each adds its own rate.")
    ] = 1,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            min=0.1,
            max=100_000,
            help="Operations a second that each worker begins. Default: as many as are answered; "
            "an address needs it.",
            show_default=False,
        ),
    ] = None,
    connections: Annotated[
        int | None,
        typer.Option(
            "--connections",
            min=1,
            max=1000,
            help="Of each worker. Default: the workload's.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=480, help="Then it ends by itself.")
    ] = 1.0,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            help="A workload that says each second what came of it, or a YAML file with one. "
            "Default: the usual one of the row's kind of server; `dsbisect list workloads` "
            "has all.",
            show_default=False,
        ),
    ] = None,
    settings_id: SettingsId = "default",
    matrix: MatrixFile = None,
    relock: Relock = False,
    keep: Keep = False,
    as_json: AsJson = False,
    users: UsersFile = None,
    bind_dn: BindDn = None,
    password_file: PasswordFile = None,
    network: LoadNetwork = None,
    yes: Annotated[
        str | None,
        typer.Option(
            "--yes",
            metavar="ADDRESS",
            help="The address again, where it is not of this machine: you may load that server.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Load a server with several workers, for a while: percentiles, errors, whether they kept up.

    Example: dsbisect measure load debian-12 --gui --workers 2 --rate 500 --minutes 10

    Example: dsbisect measure load ldap://127.0.0.1:3389 --users-file users.tsv --rate 50 --json
    """
    from dsbisect.cli.shown_output import shown_console
    from dsbisect.load_study import LoadRequest, drive_load, live_workload
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import find_row, find_settings, load_matrix
    from dslab.candidates import check_loads
    from dslab.lab_conditions import refuse_shares
    from dsresults.compare.driven_load import told_load

    if port is not None and not gui:
        raise UsageError("--port is of no use without --gui", hint="add --gui, or leave it out")
    checked = load_matrix(matrix)
    if "://" in target:
        refuse("is of no use with an address", {"--workload": workload, "--relock": relock})
        options = AddressOptions(
            address=target,
            users=users,
            bind_dn=bind_dn,
            password_file=password_file,
            network=network,
            runs=1,
            operations=1,
            threads=connections or USUAL_CONNECTIONS,
            limit_s=60 * minutes,
        )
        server: str | AddressRequest
        server, binds = _of_address(options, rate)
        _refuse_others(server, binds, workers, minutes, yes)
        load: Workload = binds
    else:
        of_address = (users, bind_dn, password_file, network, yes)
        refuse("needs an address", dict(zip(OF_ADDRESS, of_address, strict=True)))
        server, load = _of_row(checked, target, workload)
    request = LoadRequest(
        matrix=checked,
        target=server,
        workload=live_workload(load, rate, connections, workers),
        settings=find_settings(checked, settings_id),
        workers=workers,
        seconds=60 * minutes,
        gui=gui,
        port=port,
        relock=relock,
        keep=keep,
    )
    console = shown_console(stderr=True, highlight=False)

    def show(news: str) -> None:
        console.print(news, markup=False, soft_wrap=True)

    if isinstance(server, str):
        check_loads(checked, (find_row(checked, server),), (request.workload,), request.settings)
        refuse_shares((request.workload,))
    driven = drive_load(request, detect(), show)
    typer.echo(driven.model_dump_json(indent=2) if as_json else "\n".join(told_load(driven)))
    if driven.interrupted:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if driven.objections:
        raise typer.Exit(ExitCode.INCONCLUSIVE)


def _of_row(matrix: Matrix, name: str, workload: str | None) -> tuple[str, Workload]:
    from dsbisect.load_study import usual_load
    from dsbuilds.build_request import check_rows
    from dsharness.matrix import find_row, find_workload

    row = find_row(matrix, name)
    check_rows(matrix, (row,))
    return row.id, find_workload(matrix, workload) if workload else usual_load(matrix, row)


def _of_address(
    options: AddressOptions, rate: float | None
) -> tuple[AddressRequest, LdaploadWorkload]:
    """Its users bind, and no more often than was said: the server is someone else's."""
    from dsbisect.load_study import user_binds

    if rate is None:
        raise UsageError(
            f"{options.address}: how many binds a second may it get?",
            hint="--rate N: of each worker; a server of others is never loaded as far as it goes",
        )
    request = request_of(options)
    return request, user_binds(len(request.users), rate, options.threads)


def _refuse_others(
    request: AddressRequest, load: LdaploadWorkload, workers: int, minutes: float, yes: str | None
) -> None:
    """Refuse more than a server of others may be asked for, or one that nobody confirmed."""
    from dsresults.number_text import counted

    per_s, connections = workers * (load.scheduled or 0.0), workers * load.threads
    for noun, value, most in (
        ("binds a second", per_s, MOST_BINDS_PER_S),
        ("connections", connections, MOST_CONNECTIONS),
        ("minutes", minutes, MOST_MINUTES),
    ):
        if value > most:
            raise UsageError(
                f"{request.address}: {value:g} {noun}, of {counted(workers, 'worker')} together",
                hint=f"a server by its address is asked for at most {most:g} {noun}; a row of the "
                "matrix may be loaded as far as it goes",
            )
    confirmed = yes is not None and request.address.is_named(yes)
    if not confirmed and (yes is not None or not request.address.is_loopback):
        why = "is not this machine" if yes is None else f"is not what --yes names: {yes}"
        raise UsageError(
            f"{request.address} {why}: {per_s:g} binds a second for {minutes:g} min, "
            "with passwords that travel unencrypted",
            hint=f"if you may load that server, type its address again: --yes {request.address}",
        )
