"""What machines say of themselves, and which of them a process stands for.

Each function works inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection

from dsharness.errors import StoreError, UnreadableError
from dsharness.model import FleetMachine
from dsresults.store.database import clock_us, insert_new
from dsresults.store.documents import (
    change_document,
    decode_document,
    document_ids,
    documents_of,
    find_row,
    get_document,
    row_of,
)
from dsresults.store.leases import Holder, holders
from dsresults.store.tables import DOCUMENTS

LEASE = "machine/"  # and the machine's id: the key of a living worker's lease


def add_machine(connection: Connection, machine: FleetMachine) -> None:
    """Keep a machine that comes for the first time; of one that is known, nothing changes."""
    if not document_ids(connection, [FleetMachine], DOCUMENTS.c.id == machine.id):
        insert_new(connection, DOCUMENTS, row_of(machine, clock_us(connection)))


def put_machine(connection: Connection, machine: FleetMachine) -> None:
    """Keep what a machine says of itself; whether it is drained stays as it was."""
    row = find_row(connection, FleetMachine, machine.id, lock=True)
    if row is None:
        if not insert_new(connection, DOCUMENTS, row_of(machine, clock_us(connection))):
            raise StoreError(
                f"the id of the machine {machine.name}, {machine.id[:8]}, is another one's",
                hint="`dsbisect machines` shows whose; its owner can forget that machine",
            )
        return
    body = row["body"]
    drained = isinstance(body, dict) and body.get("drained") is True
    machine = machine.model_copy(update={"drained": drained})
    if body != machine.model_dump(mode="json"):
        change_document(connection, machine)


def find_machines(connection: Connection) -> list[tuple[FleetMachine, str]]:
    """All that ever came and were not forgotten, by name, and why one cannot be read.

    Such a one gets no turns: nothing is known but what it is called.
    """
    machines: list[tuple[FleetMachine, str]] = []
    for row in connection.execute(documents_of(FleetMachine).order_by(DOCUMENTS.c.of)).mappings():
        try:
            machines.append((decode_document(FleetMachine, row), ""))
        except UnreadableError as error:
            name = FleetMachine(id=row["id"], name=row["of"], class_name="", drained=True, since="")
            machines.append((name, error.message))
    return machines


def drain_machine(connection: Connection, machine_id: str, *, drained: bool) -> None:
    machine = get_document(connection, FleetMachine, machine_id, lock=True)
    if machine is not None:
        change_document(connection, machine.model_copy(update={"drained": drained}))


def machine_holders(connection: Connection) -> Mapping[str, tuple[Holder, float]]:
    """The process of each machine that has one, by the machine's id, and its silence in s."""
    held = holders(connection, LEASE)
    return {key.removeprefix(LEASE): holder for key, holder in held.items()}
