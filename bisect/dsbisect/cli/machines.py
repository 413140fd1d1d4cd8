"""`machines`: who shares searches, and those searches."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dsbisect.cli.common_options import AsJson, EventLines, ReportFolder, refuse, refuse_database
from dsbisect.cli.followed_run import follow_run, shared_store

if TYPE_CHECKING:
    from dsmany.fleet import FleetMember
    from dsresults.store import Store


def _same_database(context: typer.Context, on: str) -> str:
    """The one that was named for `machines`, unless another is named after the subcommand."""
    source = context.get_parameter_source("on")
    named_here = source is not None and source.name == "COMMANDLINE"
    return on if named_here else context.obj or on


OnOrBefore = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="URL",
        envvar="DSBISECT_ON",
        callback=_same_database,
        help="The team's PostgreSQL, unless `machines --on URL` names it.",
    ),
]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or how it begins.")]

app = typer.Typer(help="Show the machines that share searches; be one, or follow a search.")


@app.command("worker")
def worker(
    *,
    on: OnOrBefore = "",
    name: Annotated[
        str,
        typer.Option(
            "--name", help="A name for this machine. With it, one host can be several machines."
        ),
    ] = "",
    cpus: Annotated[
        str, typer.Option("--cpus", help="CPUs to measure on, as 0,2-3. Default: all.")
    ] = "",
    registry: Annotated[
        str,
        typer.Option(
            "--registry",
            metavar="HOST[:PORT]/PATH",
            envvar="DSBISECT_REGISTRY",
            help="Where machines give each other images and builds; credentials: `podman login`.",
        ),
    ] = "",
    insecure: Annotated[
        bool,
        typer.Option("--registry-insecure", help="Use a registry without TLS, or with any key."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print progress as JSON lines on standard output.")
    ] = False,
) -> None:
    """Take turns of searches that others began, until Ctrl-C.

    Example: dsbisect machines worker --on postgresql://lab@db.example.org/dsbisect
    """
    import os
    import sys
    from dataclasses import replace

    from dsbisect.cli.search_progress import Events, SearchProgress
    from dsbisect.shared_studies import SharedStudies
    from dsharness.containers.engine_probe import detect
    from dsharness.errors import UsageError
    from dsharness.machine.host import name_part
    from dsimages.registry import Registry
    from dsmany.fleet import told_abilities
    from dsmany.registry_exchange import RegistryExchange
    from dsmany.this_machine import this_machine
    from dsmany.worker import FleetWorker

    if not registry:
        refuse(
            "without --registry: nobody reads it",
            {"--registry-insecure": insecure},
            hint="--registry HOST[:PORT]/PATH, or leave it out",
        )
    shared = Registry.named(registry, insecure=insecure) if registry else None
    refuse_database(on)
    if cpus:
        try:
            os.sched_setaffinity(0, _cpu_numbers(cpus))
        except (OSError, ValueError):
            raise UsageError(
                f"--cpus {cpus}: this process cannot use them", hint="such as 0,2-3: see `nproc`"
            ) from None
    if name:
        name_part(name)
    engine = detect()
    with shared_store(on) as store, Events(sys.stdout) if as_json else SearchProgress() as watch:
        machine = this_machine(engine, name)
        watch.note(
            f"machine {machine.name} ({machine.id[:8]}), CPUs {_spelt(machine.cpus)}, "
            f"noise {machine.noise_pct} %, class: {machine.class_name}; "
            f"{told_abilities(machine.can)}"
        )
        if shared is not None:
            exchange = RegistryExchange(
                engine=engine, registry=shared, store=store, machine=machine.id, tell=watch.note
            )
            engine = replace(engine, exchange=exchange)
        FleetWorker(
            machine=machine,
            engine=engine,
            store=store,
            study_of=SharedStudies(fetched=True),
            observer=watch,
            tell=watch.note,
        ).serve()


@app.callback(invoke_without_command=True)
def machines(
    context: typer.Context,
    *,
    on: Annotated[
        str,
        typer.Option(
            "--on",
            metavar="URL",
            envvar="DSBISECT_ON",
            help="The team's PostgreSQL: postgresql://USER@HOST/DATABASE. Its password: in "
            "~/.pgpass.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show who is there, doing what, of which class, and how noisy.

    Example: dsbisect machines --on postgresql://lab@db.example.org/dsbisect
    """
    context.obj = on
    if context.invoked_subcommand is not None:
        context.default_map = {context.invoked_subcommand: {"as_json": as_json}}
        return
    from dsmany.fleet import fleet_of, told_abilities

    with shared_store(on) as store:
        doing = _turns_by_machine(store)
        fleet = fleet_of(store)
    facts = [_facts(member, doing) for member in fleet]
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for member, fact in zip(fleet, facts, strict=True):
        noise = "?" if fact["noise_pct"] is None else f"{fact['noise_pct']} %"
        typer.echo(
            f"{fact['name']}  {fact['id'][:8]}  {fact['state']}, {fact['doing']}, noise {noise}, "
            f"class: {fact['class']}; {told_abilities(member.machine.can)}"
        )
        if member.unreadable:
            typer.echo(f"  it gets no turns: {member.unreadable}")
    if not facts:
        typer.echo("no machine has come yet: `dsbisect machines worker --on URL` on each", err=True)


@app.command("drain")
def drain(
    name: Annotated[str, typer.Argument(metavar="MACHINE", help="Its name, or how its id begins.")],
    *,
    on: OnOrBefore = "",
    undo: Annotated[bool, typer.Option("--undo", help="Give it turns again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a machine no new turns; what it has it ends.

    Example: dsbisect machines drain lab-2 --on postgresql://lab@db.example.org/dsbisect
    """
    from dsresults.store.fleet_records import drain_machine

    with shared_store(on) as store:
        machine = _member(store, name).machine
        with store.database.writing() as connection:
            drain_machine(connection, machine.id, drained=not undo)
    text = f"{machine.name} gets {'turns again' if undo else 'no new turns'}"
    _say(text, {"machine": machine.id, "drained": not undo}, as_json=as_json)


@app.command("forget")
def forget(
    name: Annotated[str, typer.Argument(metavar="MACHINE", help="Its name, or how its id begins.")],
    *,
    on: OnOrBefore = "",
    as_json: AsJson = False,
) -> None:
    """Forget a machine that will not come back; its samples stay.

    Example: dsbisect machines forget lab-2 --on postgresql://lab@db.example.org/dsbisect
    """
    from dsharness.errors import BusyError
    from dsharness.model import FleetMachine
    from dsresults.store.documents import forget_document

    with shared_store(on) as store:
        member = _member(store, name)
        if member.alive:
            raise BusyError(
                f"{member.machine.name} is alive", hint="end its worker first: Ctrl-C there"
            )
        with store.database.writing() as connection:
            forget_document(connection, FleetMachine, member.machine.id)
    text = f"{member.machine.name} is forgotten"
    _say(text, {"machine": member.machine.id, "forgotten": True}, as_json=as_json)


@app.command("role")
def role(
    name: Annotated[
        str,
        typer.Argument(metavar="MACHINE", help="Its name, as `dsbisect machines worker` tells it."),
    ],
    *,
    on: OnOrBefore = "",
    as_json: AsJson = False,
) -> None:
    """Print the SQL of a database role that can only do this machine's work.

    Example: dsbisect machines role lab-2 --on $DSBISECT_ON | psql $DSBISECT_ON
    """
    from dsmany.job_queue import JobQueue
    from dsmany.worker_role import role_sql

    with shared_store(on) as store:
        JobQueue.of(store)  # rights are granted on tables that are there
    _say(role_sql(name), {"role": name, "sql": role_sql(name)}, as_json=as_json)


@app.command("attach")
def attach(
    run: RunId,
    *,
    on: OnOrBefore = "",
    output: ReportFolder = None,
    events: EventLines = False,
    as_json: AsJson = False,
) -> None:
    """Show a shared search again, and its answer; Ctrl-C leaves it to the machines.

    Example: dsbisect machines attach 3f2a9c01 --on postgresql://lab@db.example.org/dsbisect
    """
    from dsmany.attached import named_run

    with shared_store(on) as store:
        follow_run(store, named_run(store, run), output, events=events, as_json=as_json)


@app.command("cancel")
def cancel(run: RunId, *, on: OnOrBefore = "", as_json: AsJson = False) -> None:
    """End a shared search without an answer; every finished sample stays.

    Example: dsbisect machines cancel 3f2a9c01 --on postgresql://lab@db.example.org/dsbisect
    """
    from dsmany.attached import cancel_run, named_run

    with shared_store(on) as store:
        chosen_run = named_run(store, run)
        is_cancelled = cancel_run(store, chosen_run)
    text = f"run {chosen_run.id} {'is cancelled' if is_cancelled else 'had ended before'}"
    _say(text, {"run": chosen_run.id, "cancelled": is_cancelled}, as_json=as_json)


def _say(text: str, facts: dict[str, object], *, as_json: bool) -> None:
    typer.echo(json.dumps(facts) if as_json else text)


def _cpu_numbers(text: str) -> set[int]:
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def _spelt(cpus: tuple[int, ...]) -> str:
    return ", ".join(map(str, cpus))


def _member(store: Store, name: str) -> FleetMember:
    from dsharness.errors import UsageError
    from dsmany.fleet import fleet_of

    fleet = fleet_of(store)
    matches = [m for m in fleet if m.machine.name == name or m.machine.id.startswith(name)]
    if len(matches) != 1:
        names = ", ".join(member.machine.name for member in fleet) or "none"
        raise UsageError(f"{len(matches)} machines are called {name!r}", hint=f"there are: {names}")
    return matches[0]


def _facts(member: FleetMember, doing: dict[str, str]) -> dict[str, Any]:
    machine = member.machine
    state = "unreadable" if member.unreadable else "drained" if machine.drained else "alive"
    return {
        "name": machine.name,
        "id": machine.id,
        "state": state if member.alive else "gone",
        "doing": doing.get(machine.id, "idle") if member.alive else "nothing",
        "noise_pct": machine.noise_pct,
        "class": machine.class_name,
        "can": machine.can and machine.can.model_dump(mode="json"),
        "unreadable": member.unreadable,
        "silent_s": None if member.silent_s is None else round(member.silent_s, 1),
    }


def _turns_by_machine(store: Store) -> dict[str, str]:
    """What each machine has of the runs that are under way."""
    from dsharness.model import RunState, SharedRun
    from dsmany.fleet import planned_turns

    runs = store.find(SharedRun, state=RunState.RUNNING)
    doing = {
        run.preparing: f"prepares run {run.id[:8]}"
        for run in runs
        if run.preparing and run.unprepared
    }
    for run_id, turns in planned_turns(store, runs).items():
        for turn in turns:
            doing[turn.machine] = (
                f"turn {turn.number} of run {run_id[:8]}: {', '.join(turn.candidates)}"
            )
    return doing
