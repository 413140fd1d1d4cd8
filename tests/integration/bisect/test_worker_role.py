"""A machine's role of a real PostgreSQL: a whole search is taken with it, and nothing else is.

Workers, queue and planner are real, each worker in a process of its own; the world is made up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TextIO

import psycopg
import pytest
from fleet_of_worlds import CLASS, WORKLOAD, WorldStudy, begun, now, prove_whole, turns_of
from forks import forked
from observers import RecordingObserver
from postgresql_cluster import Cluster, running_cluster
from sqlalchemy import text

from dsharness.model import (
    Campaign,
    FleetMachine,
    Prepared,
    PreparedLab,
    Procedure,
    RunState,
    SharedRun,
    Turn,
)
from dsharness.process.deadline import Deadline, wait_until
from dsmany.attached import cancel_run
from dsmany.fleet import campaign_id_of, fleet_of
from dsmany.job_queue import JobQueue
from dsmany.worker import FleetWorker
from dsmany.worker_role import role_sql
from dsresults.profile_pair import stored_profiles
from dsresults.store import Store
from dsresults.store.documents import change_document, get_document
from dsresults.store.records import put

MACHINES = ("lab-1", "lab-2")
FIRST_LAB = PreparedLab(
    procedure=Procedure(version=1), paired=True, identities={"a": "b"}, unmeasurable={}
)
PREPARED = Prepared(class_name=CLASS, labs={"w": FIRST_LAB}, lock="{}", looks={"sides": [1]})
OTHER_LAB = FIRST_LAB.model_copy(update={"identities": {"a": "another"}}).model_dump(mode="json")
COPY = (
    "campaign_id, candidate_id, settings_id, workload_id, image_key, started_at, started_us,"
    " duration_s, turn, attempt, operations, errors, calibrator_us, steal_pct, invalid"
)


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A store whose machines have roles of their own."""

    cluster: Cluster
    name: str
    store: Store

    def told(self, statement: str, machine: str = "lab-1") -> str:
        """What a machine's role is answered: how many rows, or why not."""
        address = f"host={self.cluster.folder} user={machine} dbname={self.name}"
        with psycopg.connect(address, autocommit=True) as connection:
            try:
                return f"{connection.execute(statement).rowcount} rows"
            except (
                psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException,
            ) as error:  # fmt: skip
                return str(error)

    def body_of(self, machine: str) -> str:
        with self.store.database.reading() as connection:
            asked = text("SELECT body::text FROM documents WHERE of = :name")
            return str(connection.scalar(asked, {"name": machine}))

    def serve(self, machine: str) -> int:
        """Be a worker with that role until killed."""
        study = WorldStudy(machine=f"id-{machine}", profiled=True)
        told = FleetMachine(id=f"id-{machine}", name=machine, class_name=CLASS, since="2026-11-27")
        with Store.open(self.cluster.url(self.name, machine)) as store:
            FleetWorker(
                machine=told, engine=None, store=store, study_of=lambda _: study,  # type: ignore[arg-type]
                observer=RecordingObserver(), tell=print,
            ).serve()  # fmt: skip
        return 0


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """One search, taken by two workers that have such roles."""
    with running_cluster() as cluster:
        name = cluster.new_database()
        with Store.open(cluster.url(name)) as store, ExitStack() as workers:
            JobQueue.of(store)
            for machine in (*MACHINES, MACHINES[0]):  # again: it changes nothing
                cluster.execute(role_sql(machine), database=name)
            found = Guarded(cluster=cluster, name=name, store=store)
            for machine in MACHINES:

                def work(_: TextIO, machine: str = machine) -> int:
                    return found.serve(machine)

                workers.enter_context(forked(work))
            wait_until(lambda: len(fleet_of(store)) == 2 or None, Deadline.after(60), what="both")
            run = begun(store)
            wait_until(
                lambda: now(store, run).state is not RunState.RUNNING or None,
                Deadline.after(120),
                what="the answer",
            )  # fmt: skip
            ended = now(store, run)
            assert ended.state is RunState.DONE, ended
            prove_whole(store, run)
            assert len(stored_profiles(store, [campaign_id_of(run, 0)])) == 1
            assert {turn.machine for turn in turns_of(store, run)} <= {"id-lab-1", "id-lab-2"}
            workers.close()
            yield found


def added(kind: str, *, id: str = "x", of: str = "", state: str = "", body: str = "{}") -> str:  # noqa: A002
    """What adds a document."""
    return f"INSERT INTO documents VALUES ('{kind}', '{id}', '{of}', '{state}', 0, '{body}')"


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM samples",
        "UPDATE samples SET errors = 1",
        "TRUNCATE samples",
        "DROP TABLE samples",
        "ALTER TABLE samples DISABLE ROW LEVEL SECURITY",
        "DELETE FROM turns",
        "INSERT INTO turns SELECT 'x', campaign_id, 99, 1, 'done', rest FROM turns LIMIT 1",
        "UPDATE turns SET campaign_id = 'x'",
        "DELETE FROM documents",
        "DELETE FROM documents WHERE kind = 'machine' AND of = 'lab-1'",
        "TRUNCATE documents",
        "UPDATE documents SET kind = 'run'",
        "UPDATE documents SET id = 'id-lab-3' WHERE kind = 'machine'",
        "UPDATE documents SET of = 'lab-2' WHERE kind = 'machine'",
        "UPDATE documents SET time_us = 0",
        added("campaign", state="answered"),
        added("machine", of="lab-3"),
        added("machine", of="lab-1", id="id-lab-3"),
        added("run", state="running"),
        added("another kind"),
        added("given image", body='{"machine": "id-lab-2"}'),
        added("given image", body="{}"),
        "SET ROLE dsbisect_worker; INSERT INTO leases VALUES ('machine/x', 'h', 'p', 'o', 's', 0)",
        "INSERT INTO leases VALUES ('machine/id-lab-2', 'h', 'p', 'o', 's', 0)",
        "INSERT INTO leases VALUES ('machine/id-lab-3', 'h', 'p', 'o', 's', 0)",
        "INSERT INTO leases VALUES ('a search of the owner', 'h', 'p', 'o', 's', 0)",
        "SELECT * FROM pg_authid",
        "COPY samples TO PROGRAM 'cat'",
        "CREATE ROLE another LOGIN",
    ],
)
def test_what_is_no_worker_s_work_is_refused(guarded: Guarded, statement: str) -> None:
    answer = guarded.told(statement)
    assert "permission denied" in answer or "must be owner" in answer or "violates" in answer or (
        "must be superuser" in answer
    ), answer  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE documents SET body = '{}' WHERE kind = 'machine' AND of = 'lab-2'",
        "UPDATE documents SET body = '{}' WHERE kind = 'campaign'",
        "UPDATE documents SET state = 'open' WHERE kind = 'campaign'",
        "UPDATE documents SET state = 'running' WHERE kind = 'run'",
        "UPDATE documents SET body = '{}' WHERE kind IN ('finding', 'image', 'given image')",
        "UPDATE turns SET state = 'given up'",
        "DELETE FROM leases WHERE id = 'machine/id-lab-2'",
    ],
)
def test_what_has_ended_or_is_another_s_cannot_be_changed(guarded: Guarded, statement: str) -> None:
    """Rows that row-level security hides from a statement are not there for it."""
    assert guarded.told(statement) == "0 rows"


REQUESTED = {
    "another matrix": ("request", {"world": "another"}),
    "no request": ("request", None),
    "another class": ("class_name", "another"),
    "another id": ("id", "another"),
    "another key": ("request_key", "another"),
    "another lock": ("prepared", {"lock": "another"}),
    "another build": ("prepared", {"labs": {"w": OTHER_LAB}}),
    "a lab less": ("prepared", {"labs": {}}),
    "another look": ("prepared", {"looks": {"sides": [1, 2]}}),
    "prepared again": ("prepared", None),
}


@pytest.fixture
def running(guarded: Guarded) -> Iterator[SharedRun]:
    """A run that one machine has prepared and whose turns nobody takes."""
    run = begun(guarded.store)
    with guarded.store.database.writing() as connection:
        there = get_document(connection, SharedRun, run.id, lock=True)
        assert there is not None
        run = there.model_copy(update={"prepared": PREPARED})
        change_document(connection, run)
    try:
        yield run
    finally:
        cancel_run(guarded.store, run)


@pytest.mark.parametrize("changed", REQUESTED)
def test_what_was_asked_and_prepared_stays_as_it_is_for_all(
    guarded: Guarded, running: SharedRun, changed: str
) -> None:
    field, value = REQUESTED[changed]
    if isinstance(value, dict) and field == "prepared":
        value = PREPARED.model_dump(mode="json") | value
    body = json.dumps({**running.model_dump(mode="json"), field: value})
    shadows = "CREATE TEMP TABLE pg_class AS SELECT oid, to_regrole('\"lab-1\"')::oid AS relowner "
    shadows += "FROM pg_catalog.pg_class; SET search_path = pg_temp, public, pg_catalog; "
    for first in ("", "SET ROLE dsbisect_worker; ", shadows):
        change = f"UPDATE documents SET body = '{body}' WHERE id = '{running.id}'"
        answer = guarded.told(f"{first}{change}")
        assert "is not changed any more" in answer
    assert now(guarded.store, running) == running


def test_a_machine_plans_what_was_asked(guarded: Guarded, running: SharedRun) -> None:
    there = running.model_copy(update={"remaining": 7, "left_out": {"id-lab-2": "too noisy"}})
    with (
        Store.open(guarded.cluster.url(guarded.name, "lab-1")) as store,
        store.database.writing() as connection,
    ):
        assert get_document(connection, SharedRun, running.id, lock=True) == running
        change_document(connection, there)
    assert now(guarded.store, running) == there


@pytest.mark.parametrize("field", ["candidates", "machine", "workload", "way", "number"])
def test_a_turn_stays_what_it_was_planned_as(
    guarded: Guarded, running: SharedRun, field: str
) -> None:
    turn = turns_of(guarded.store, running) or [
        Turn(campaign_id="c", number=len(field), candidates=("a", "b"), workload=WORKLOAD,
             machine="id-lab-2")
    ]  # fmt: skip
    with guarded.store.database.writing() as connection:
        put(connection, turn[0])
    change = {
        "candidates": "rest = jsonb_set(rest::jsonb, '{candidates}', '[\"x\"]')::json",
        "machine": "rest = jsonb_set(rest::jsonb, '{machine}', '\"id-lab-1\"')::json",
        "workload": "rest = jsonb_set(rest::jsonb, '{workload,title}', '\"x\"')::json",
        "way": "rest = jsonb_set(rest::jsonb, '{way}', '\"duet\"')::json",
        "number": "number = 77",
    }[field]
    answer = guarded.told(f"UPDATE turns SET {change} WHERE id = '{turn[0].id}'")
    assert "is not changed any more" in answer or "permission denied" in answer


def test_a_machine_that_writes_nonsense_of_itself_is_left_out_alone(guarded: Guarded) -> None:
    """Planning goes on with the others; who looks sees which machine, and why."""
    fine = guarded.body_of("lab-1")
    try:
        for nonsense in ("[]", '"x"', '{"cpus": "all", "since": "now"}', "{}", "7"):
            change = f"UPDATE documents SET body = '{nonsense}' WHERE kind = 'machine'"
            assert guarded.told(change) == "1 rows"
            fleet = {member.machine.name: member for member in fleet_of(guarded.store)}
            assert "'id-lab-1'" in fleet["lab-1"].unreadable
            assert fleet["lab-1"].machine.drained
            assert not fleet["lab-2"].unreadable
    finally:
        guarded.cluster.execute(
            f"UPDATE documents SET body = '{fine}' WHERE of = 'lab-1'", database=guarded.name
        )


def test_a_turn_that_cannot_be_read_ends_no_planning(guarded: Guarded) -> None:
    told: list[str] = []
    guarded.store.database.tell = told.append
    statement = "INSERT INTO turns VALUES ('nonsense', 'x', 1, 1, 'planned', '[]')"
    assert guarded.told(statement) == "1 rows"
    try:
        before = guarded.store.planned_turns()
        assert guarded.store.planned_turns() == before
        assert "x" not in {turn.campaign_id for turn in before}
    finally:
        guarded.cluster.execute("DELETE FROM turns WHERE id = 'nonsense'", database=guarded.name)
    (line,) = told
    assert "the stored turn 'nonsense' cannot be read" in line


def test_a_machine_changes_its_own_row(guarded: Guarded) -> None:
    assert guarded.told("UPDATE documents SET body = body WHERE kind = 'machine'") == "1 rows"


def test_a_machine_says_what_it_gave_itself(guarded: Guarded) -> None:
    own = added("given image", id="mine", body='{"machine": "id-lab-1"}')
    assert guarded.told(own) == "1 rows"
    assert guarded.told("SELECT * FROM documents WHERE id = 'mine'", "lab-2") == "1 rows"


@pytest.mark.parametrize("field", ["id", "series_id", "line", "metric", "fingerprint", "search"])
def test_a_question_stays_as_it_was_asked(guarded: Guarded, field: str) -> None:
    campaign = Campaign(
        id=f"asked-{field}", series_id="s", line=("a", "b"), workload_id="w", settings_id="d",
        started_at="2026-11-29T00:00:00Z", fingerprint="f",
    )  # fmt: skip
    guarded.store.put(campaign)
    changed = json.dumps({**campaign.model_dump(mode="json"), field: "x"})
    which = f"WHERE id = '{campaign.id}'"
    answer = guarded.told(f"UPDATE documents SET body = '{changed}' {which}")
    assert f"{{body,{field}}} of documents" in answer
    guarded.told(f"UPDATE documents SET state = 'answered' {which}")
    guarded.store.database.tell = (told := list[str]()).append
    assert campaign.id not in {other.id for other in guarded.store.campaigns()}
    assert "its state is 'open' in its body" in told[-1]


def test_a_machine_that_calls_itself_another_one_is_left_out_alone(guarded: Guarded) -> None:
    fine = guarded.body_of("lab-1")
    other = guarded.body_of("lab-2")
    try:
        change = f"UPDATE documents SET body = '{other}' WHERE kind = 'machine'"
        assert guarded.told(change) == "1 rows"
        fleet = {member.machine.name: member for member in fleet_of(guarded.store)}
        assert "its of is 'lab-2' in its body, 'lab-1' in the table" in fleet["lab-1"].unreadable
        assert not fleet["lab-2"].unreadable
    finally:
        guarded.cluster.execute(
            f"UPDATE documents SET body = '{fine}' WHERE of = 'lab-1'", database=guarded.name
        )


def test_a_sample_is_of_a_turn_that_its_machine_was_given(guarded: Guarded) -> None:
    run = begun(guarded.store, machines=2)  # nobody takes its turns
    try:
        for machine, number in (("lab-1", 7), ("lab-2", 8)):
            guarded.cluster.execute(
                f"INSERT INTO turns SELECT 'given-{number}', campaign_id, 1000 + {number}, 1,"
                f" 'planned', jsonb_set(rest::jsonb, '{{machine}}', '\"id-{machine}\"')::json"
                " FROM turns WHERE campaign_id = (SELECT campaign_id FROM samples LIMIT 1) LIMIT 1",
                database=guarded.name,
            )

        def sample(number: int, machine: str) -> str:
            columns = COPY.replace("turn,", f"{1000 + number},")
            return (
                f"INSERT INTO samples (id, rest, {COPY}) SELECT 'forged-{number}-{machine}',"
                f" jsonb_set(rest::jsonb, '{{machine,id}}', '\"id-{machine}\"')::json, {columns}"
                " FROM samples LIMIT 1"
            )

        assert guarded.told(sample(7, "lab-1")) == "1 rows"
        for number, machine in ((8, "lab-1"), (7, "lab-2"), (8, "lab-2"), (9, "lab-1")):
            assert "violates" in guarded.told(sample(number, machine))
    finally:
        cancel_run(guarded.store, run)


def test_other_roles_keep_what_they_may_do(guarded: Guarded) -> None:
    guarded.cluster.execute(
        "CREATE ROLE colleague LOGIN", "GRANT SELECT, UPDATE ON documents TO colleague",
        database=guarded.name,
    )  # fmt: skip
    change = "UPDATE documents SET body = body WHERE kind = 'machine'"
    changed = guarded.told(change, "colleague")
    assert changed == "2 rows"
