"""What machines share: who they are, and the runs whose turns they take.

Each function works inside the caller's transaction, so that a job can be queued in the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sqlalchemy import Connection, Select, Table, delete, select, update

from dsharness.content_key import content_key
from dsharness.errors import StoreError, UnreadableError
from dsharness.model import FleetMachine, GivenImage, RunState, SharedRun, Turn, Value
from dsresults.store.claims import Holder, clock_us, holders
from dsresults.store.database import Database
from dsresults.store.records import readable
from dsresults.store.tables import GIVEN_IMAGES, MACHINES, RUNS, TURNS, decode, encode

V = TypeVar("V", bound=Value)
MOST_GIVEN = 20  # of one key that are looked at
CLAIM = "machine/"  # and the machine's id: the key of a living worker's claim


def add_machine(database: Database, connection: Connection, machine: FleetMachine) -> None:
    """Keep a machine that comes for the first time; of one that is known, nothing changes."""
    known = select(MACHINES.c.id).where(MACHINES.c.id == machine.id)
    if connection.scalar(known) is None:
        database.insert_new(connection, MACHINES, encode(machine, MACHINES))


def put_machine(database: Database, connection: Connection, machine: FleetMachine) -> None:
    """Keep what a machine says of itself; whether it is drained stays as it was."""
    there = connection.execute(_locked(MACHINES, machine.id)).mappings().one_or_none()
    if there is None:
        if not database.insert_new(connection, MACHINES, encode(machine, MACHINES)):
            raise StoreError(
                f"the id of the machine {machine.name}, {machine.id[:8]}, is another one's",
                hint="`dsbisect machines` shows whose; its owner can forget that machine",
            )
        return
    rest = there["rest"]
    drained = isinstance(rest, dict) and rest.get("drained") is True
    row = encode(machine.model_copy(update={"drained": drained}), MACHINES)
    changed = {name: cell for name, cell in row.items() if cell != there[name]}
    if changed:
        connection.execute(update(MACHINES).where(MACHINES.c.id == machine.id).values(changed))


def find_machines(connection: Connection) -> list[tuple[FleetMachine, str]]:
    """All that ever came and were not forgotten, by name, and why one cannot be read.

    Such a one gets no turns: nothing is known but what it is called.
    """
    machines: list[tuple[FleetMachine, str]] = []
    for row in connection.execute(select(MACHINES).order_by(MACHINES.c.name)).mappings():
        try:
            machines.append((decode(FleetMachine, dict(row)), ""))
        except UnreadableError as error:
            named = FleetMachine(
                id=row["id"], name=row["name"], class_name=row["class_name"], drained=True, since=""
            )
            machines.append((named, error.message))
    return machines


def drain_machine(connection: Connection, machine_id: str, *, drained: bool) -> None:
    there = _one(FleetMachine, connection, _locked(MACHINES, machine_id))
    if there is not None:
        row = encode(there.model_copy(update={"drained": drained}), MACHINES)
        which = MACHINES.c.id == machine_id
        connection.execute(update(MACHINES).where(which).values(rest=row["rest"]))


def forget_machine(connection: Connection, machine_id: str) -> None:
    connection.execute(delete(MACHINES).where(MACHINES.c.id == machine_id))


def machine_holders(
    database: Database, connection: Connection
) -> Mapping[str, tuple[Holder, float]]:
    """The process of each machine that has one, by the machine's id, and its silence in s."""
    found = holders(database, connection, CLAIM)
    return {key.removeprefix(CLAIM): held for key, held in found.items()}


def add_run(database: Database, connection: Connection, run: SharedRun) -> None:
    if not database.insert_new(connection, RUNS, encode(run, RUNS)):
        raise StoreError(f"{database.location} already has a run {run.id}", hint="try again")


def locked_run(connection: Connection, run_id: str) -> SharedRun | None:
    """A run that nobody else changes until this transaction ends."""
    return _one(SharedRun, connection, _locked(RUNS, run_id))


def write_run(connection: Connection, run: SharedRun) -> None:
    """Replace a run that this transaction has locked; what names it stays."""
    row = encode(run, RUNS)
    changed = {name: row[name] for name in ("state", "rest")}
    connection.execute(update(RUNS).where(RUNS.c.id == run.id).values(changed))


def find_run(connection: Connection, run_id: str) -> SharedRun | None:
    return _one(SharedRun, connection, select(RUNS).where(RUNS.c.id == run_id))


def find_runs(
    database: Database, connection: Connection, state: RunState | None = None
) -> list[SharedRun]:
    """Those in that state, or all; the newest last."""
    query = select(RUNS).order_by(RUNS.c.started_us)
    if state is not None:
        query = query.where(RUNS.c.state == state.value)
    return readable(database, SharedRun, connection.execute(query).mappings())


def find_turn(connection: Connection, turn_id: str) -> Turn | None:
    return _one(Turn, connection, select(TURNS).where(TURNS.c.id == turn_id))


def put_given_image(database: Database, connection: Connection, image: GivenImage) -> None:
    """Let all machines know where an image is; nothing of it is changed afterwards."""
    identity = content_key(image.model_dump(mode="json"))
    row = encode(image, GIVEN_IMAGES, id=identity)
    by_one_clock = {"added_us": clock_us(database, connection)}
    database.insert_new(connection, GIVEN_IMAGES, {**row, **by_one_clock})


def find_given_image(
    database: Database, connection: Connection, kind: str, key: str, architecture: str
) -> GivenImage | None:
    """The one that was given last: who found an earlier one to be lost gave another."""
    of_it = (
        GIVEN_IMAGES.c.key == key,
        GIVEN_IMAGES.c.kind == kind,
        GIVEN_IMAGES.c.architecture == architecture,
    )
    newest = (GIVEN_IMAGES.c.added_us.desc(), GIVEN_IMAGES.c.id)
    query = select(GIVEN_IMAGES).where(*of_it).order_by(*newest).limit(MOST_GIVEN)
    return next(iter(readable(database, GivenImage, connection.execute(query).mappings())), None)


def _locked(table: Table, row_id: str) -> Select[tuple[object, ...]]:
    return select(table).where(table.c.id == row_id).with_for_update()


def _one(kind: type[V], connection: Connection, query: Select[tuple[object, ...]]) -> V | None:
    row = connection.execute(query).mappings().one_or_none()
    return None if row is None else decode(kind, dict(row))
