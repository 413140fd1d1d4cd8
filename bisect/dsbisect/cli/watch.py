"""`watch`: branches are measured as they grow, and alarms wait for a person to release them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    MACHINES,
    AsJson,
    Keep,
    MachineClass,
    MachineNumber,
    MatrixFile,
    MeasuredOn,
    Refs,
    ReportFolder,
    StorePlace,
    refuse_unread,
)
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.cli.search_progress import SearchProgress
    from dsbisect.watch_searches import Searches
    from dsbisect.watch_study import WatchFile, WatchPass
    from dsbisect.watched_rows import RowsPass
    from dsharness.model import Matrix
    from dsresults.store import Store
    from dsresults.watch.alarms import Alarm
    from dsresults.watch.watch_state import WatchState

app = typer.Typer(help="Measure branches as they grow; decide on alarms, and release their texts.")

# The others are found by measuring; `named` is proved by builds.
BY_A_PERSON = ("reported", "accepted", "wont-fix", "fixed", "invalid", "confirmed")
FileOfWatch = Annotated[
    Path, typer.Argument(metavar="WATCH.YAML", help="What is watched: docs/watch.md.")
]
AlarmId = Annotated[
    str, typer.Argument(metavar="ALARM", help="An alarm's id: `dsbisect watch show` lists them.")
]


@app.command("run")
def watch_run(  # noqa: PLR0913 - each is an option
    watch: FileOfWatch,
    *,
    every: Annotated[
        float | None,
        typer.Option(
            "--every",
            min=1,
            metavar="MINUTES",
            help="Look again after so many minutes, until Ctrl-C. Without it: once.",
            show_default=False,
        ),
    ] = None,
    matrix: MatrixFile = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    keep: Keep = False,
    on: MeasuredOn = None,
    machines: MachineNumber = None,
    class_name: MachineClass = "",
    refs: Refs = "",
    as_json: AsJson = False,
) -> None:
    """Compare each branch's tip, and each row's packages, with their reference.

    A difference between commits is followed to its commit.

    Example: dsbisect watch run watch.yaml

    Example: dsbisect watch run watch.yaml --every 60

    Example: dsbisect watch run watch.yaml --every 60 --on postgresql://lab@db.example.org/dsbisect
    """
    import time

    from dsbisect.cli.search_progress import SearchProgress
    from dsbisect.watch_study import read_watch
    from dsharness.matrix import load_matrix
    from dsresults.watch.watch_page import write_watch
    from dsresults.watch.watch_state import told_watch

    refuse_unread(on, machines, class_name, refs)
    checked = load_matrix(matrix, folder=False)
    watch_file = read_watch(watch, checked)
    with _searches(on, store, machines, class_name, refs) as (opened, searches):

        def tell() -> None:
            state = _state(opened, watch_file.id)
            page = write_watch(output or Path("results") / "watch" / watch_file.id, state)
            text = "\n".join((*told_watch(state), str(page)))
            typer.echo(state.model_dump_json(indent=2) if as_json else text)

        again = every is not None
        while True:
            with SearchProgress() as progress:
                for watch_pass in _passes(
                    watch_file, checked, searches, opened, progress, keep=keep
                ):
                    tried(watch_pass.run, progress.note, again=again)
            tried(tell, _error, again=again)
            if every is None:
                return
            _error(f"looking again in {every:g} min")
            time.sleep(60 * every)


def _error(line: str) -> None:
    typer.echo(line, err=True)


def tried(step: Callable[[], object], say: Callable[[str], None], *, again: bool) -> None:
    """With ``again``, what is no fault of what was asked is told: the next look tries again."""
    from dsharness.errors import DsbisectError, MatrixError, StoppedError, UpgradedError

    try:
        step()
    except (UsageError, MatrixError, UpgradedError, StoppedError):
        raise
    except DsbisectError as error:
        if not again:
            raise
        say(f"error: {error.message}")


def _passes(
    watch_file: WatchFile,
    matrix: Matrix,
    searches: Searches,
    store: Store,
    progress: SearchProgress,
    *,
    keep: bool,
) -> Iterator[WatchPass | RowsPass]:
    """A look at the branches, then one at the rows, whose images are on this machine."""
    from dsbisect.watch_study import WatchPass
    from dsbisect.watched_rows import OwnStates, RowsPass
    from dsharness.containers.engine_probe import detect

    yield WatchPass(
        asked=watch_file,
        matrix=matrix,
        searches=searches,
        store=store,
        observer=progress,
        keep=keep,
        say=progress.note,
    )
    if watch_file.rows:
        states = OwnStates(watch=watch_file.id, matrix=matrix, engine=detect(), store=store)
        yield RowsPass(
            asked=watch_file,
            matrix=matrix,
            states=states,
            store=store,
            observer=progress,
            keep=keep,
            say=progress.note,
        )


@contextmanager
def _searches(
    on: str | None, store: str | None, machines: str | None, class_name: str, refs: str
) -> Iterator[tuple[Store, Searches]]:
    """The store, and who searches."""
    from dsbisect.watch_searches import OwnSearches, SharedSearches
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    if on is not None:
        from dsbisect.cli.followed_run import shared_store
        from dsmany.fleet import MachineCount

        count = MachineCount.read(machines or MACHINES)
        with shared_store(on, store=store) as shared:
            yield (
                shared,
                SharedSearches(store=shared, machines=count, class_name=class_name, refs=refs),
            )
        return
    engine = detect()
    with Store.open(store) as opened:
        yield opened, OwnSearches(engine=engine, store=opened)


@app.command("show")
def watch_show(
    name: Annotated[
        str, typer.Argument(metavar="WATCH|ALARM", help="A watch's id, or an alarm's.")
    ],
    *,
    store: StorePlace = None,
    output: ReportFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show what a watch has seen, or an alarm with its text for upstream.

    Example: dsbisect watch show my-server

    Example: dsbisect watch show 5b3a7c1d2e4f
    """
    from dsresults.store import Store
    from dsresults.watch.alarms import alarms_of
    from dsresults.watch.watch_state import told_watch

    with Store.open(store, create=False) as opened:
        state = _state(opened, name)
        alarms_by_id = {alarm.id: alarm for alarm in alarms_of(opened.findings("alarm"))}
    if state.series or state.alarms:
        pages = (_written(output, state),) if output else ()
        text = "\n".join((*told_watch(state), *pages))
        typer.echo(state.model_dump_json(indent=2) if as_json else text)
        return
    alarm = _alarm(alarms_by_id, name)
    typer.echo(alarm.model_dump_json(indent=2) if as_json else "\n".join(_told(alarm)))


@app.command("set")
def watch_set(
    alarm: AlarmId,
    state: Annotated[
        str, typer.Argument(metavar="STATE", help=f"One of {', '.join(BY_A_PERSON)}.")
    ],
    *,
    note: Annotated[str, typer.Option("--note", help="Why; it is kept.")] = "",
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Decide what becomes of an alarm.

    Example: dsbisect watch set 5b3a7c1d2e4f accepted --note "safer hashes are worth it"
    """
    from dsresults.store import Store
    from dsresults.watch.alarms import AlarmEvent, AlarmState, alarms_of
    from dsresults.watch.watched_series import moment

    if state not in BY_A_PERSON:
        raise UsageError(
            f"{state}: no state that a person gives an alarm",
            hint=f"one of {', '.join(BY_A_PERSON)}",
        )
    with Store.open(store, create=False) as opened:
        chosen_alarm = _alarm(
            {candidate.id: candidate for candidate in alarms_of(opened.findings("alarm"))}, alarm
        )
        event = AlarmEvent(alarm=chosen_alarm.id, at=moment(), state=AlarmState(state), note=note)
        opened.put(event.finding)
    text = f"alarm {chosen_alarm.id}: {chosen_alarm.state.value} -> {state}"
    typer.echo(event.model_dump_json(indent=2) if as_json else text)


@app.command("release")
def watch_release(
    alarm: AlarmId,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="PLACE",
            help="file:PATH, mail:ADDRESS, github:OWNER/NAME, gitlab:GROUP/NAME, or https://...",
        ),
    ],
    send: Annotated[
        bool, typer.Option("--send", help="Deliver it. Without this it is only shown.")
    ] = False,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Deliver an alarm's text; without --send only show what would go where.

    Example: dsbisect watch release 5b3a7c1d2e4f --to file:issue.md

    Example: dsbisect watch release 5b3a7c1d2e4f --to github:OWNER/NAME --send
    """
    from dsbisect.outbox import outlet
    from dsresults.store import Store
    from dsresults.watch.alarms import AlarmEvent, AlarmState, alarms_of
    from dsresults.watch.watched_series import moment

    way = outlet(to)
    with Store.open(store, create=False) as opened:
        chosen_alarm = _alarm(
            {candidate.id: candidate for candidate in alarms_of(opened.findings("alarm"))}, alarm
        )
        if not chosen_alarm.text:
            raise UsageError(
                f"alarm {chosen_alarm.id} has no text to deliver",
                hint="`dsbisect watch show` says why",
            )
        if not send:
            text = f"{chosen_alarm.title}\n\n{chosen_alarm.text}\nnot sent to {way}: add --send"
            typer.echo(chosen_alarm.model_dump_json(indent=2) if as_json else text)
            return
        place = way.send(chosen_alarm)
        event = AlarmEvent(
            alarm=chosen_alarm.id,
            at=moment(),
            state=AlarmState.REPORTED,
            note=f"delivered: {place}",
        )
        opened.put(event.finding)
    line = f"alarm {chosen_alarm.id}: {event.note}"
    typer.echo(event.model_dump_json(indent=2) if as_json else line)


def _written(folder: Path, state: WatchState) -> str:
    """Pages take a while to import, and most who ask want none."""
    from dsresults.watch.watch_page import write_watch

    return str(write_watch(folder, state))


def _state(store: Store, name: str) -> WatchState:
    from dsresults.watch.alarms import alarms_of
    from dsresults.watch.watch_state import watch_state
    from dsresults.watch.watched_series import tips_of

    findings = store.findings("watched", "alarm")
    return watch_state(name, tips_of(findings, name), alarms_of(findings))


def _alarm(alarms_by_id: dict[str, Alarm], name: str) -> Alarm:
    matches = [alarm for key, alarm in alarms_by_id.items() if key.startswith(name)]
    if len(matches) != 1:
        listed = ", ".join(alarms_by_id) or "none"
        raise UsageError(
            f"{name}: no alarm" if not matches else f"{name}: {len(matches)} alarms begin so",
            hint=f"there are: {listed}",
        )
    return matches[0]


def _told(alarm: Alarm) -> list[str]:
    lines = [f"alarm {alarm.id}: {alarm.state.value}"]
    for event in alarm.events:
        where = f" on {event.series}" if event.series else ""
        lines.append(f"  {event.at}  {event.state.value}{where}: {event.note}")
    return [*lines, "", alarm.title, "", alarm.text] if alarm.text else lines
