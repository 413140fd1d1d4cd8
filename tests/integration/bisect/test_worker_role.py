"""A machine's role of a real PostgreSQL: a whole search is taken with it, and nothing else is.

Workers, queue and planner are real, each worker in a process of its own; the world is made up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TextIO

import psycopg
import pytest
from fleet_of_worlds import CLASS, WorldStudy, begun, now, prove_whole, turns_of
from forks import forked
from postgresql_cluster import Cluster, running_cluster
from watchers import RecordingWatcher

from dsharness.model import FleetMachine, RunState
from dsharness.process.deadline import Deadline, wait_until
from dsmany.attached import cancel_run
from dsmany.fleet import campaign_id_of
from dsmany.job_queue import JobQueue
from dsmany.worker import FleetWorker
from dsmany.worker_role import role_sql
from dsresults.profile_pair import stored_profiles
from dsresults.store import Store
from dsresults.store.shared_records import find_machines

MACHINES = ("lab-1", "lab-2")
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
            except psycopg.errors.InsufficientPrivilege as error:
                return str(error)

    def serve(self, machine: str) -> int:
        """Be a worker with that role until killed."""
        study = WorldStudy(machine=f"id-{machine}", profiled=True)
        told = FleetMachine(id=f"id-{machine}", name=machine, class_name=CLASS, since="2026-11-27")
        with Store.open(self.cluster.url(self.name, machine)) as store:
            FleetWorker(
                machine=told, engine=None, store=store, study_of=lambda _: study,  # type: ignore[arg-type]
                watcher=RecordingWatcher(), tell=print,
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
            wait_until(
                lambda: len(machines_of(store)) == 2 or None, Deadline.after(60), what="both"
            )
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


def machines_of(store: Store) -> list[FleetMachine]:
    with store.database.reading() as connection:
        return find_machines(connection)


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
        "DELETE FROM machines",
        "UPDATE machines SET name = 'lab-2'",
        "INSERT INTO machines SELECT 'x', 'lab-3', class_name, rest FROM machines LIMIT 1",
        "INSERT INTO runs SELECT 'x', state, request_key, started_at, started_us, rest FROM runs",
        "DELETE FROM runs",
        "UPDATE findings SET kind = 'alarm'",
        "INSERT INTO claims VALUES ('machine/id-lab-2', 'h', 'p', 'o', 's', 0)",
        "INSERT INTO given_images VALUES ('x', 'k', 'build', 'amd64', 'id-lab-2', '', 0, '{}')",
        "UPDATE given_images SET machine = 'id-lab-1'",
        "DELETE FROM given_images",
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
        "UPDATE machines SET class_name = 'x' WHERE name = 'lab-2'",
        "UPDATE campaigns SET boundary = NULL",
        "UPDATE turns SET state = 'given up'",
        "UPDATE runs SET state = 'running'",
        "DELETE FROM claims WHERE id = 'machine/id-lab-2'",
    ],
)
def test_what_has_ended_or_is_another_s_cannot_be_changed(guarded: Guarded, statement: str) -> None:
    """Rows that row-level security hides from a statement are not there for it."""
    assert guarded.told(statement) == "0 rows"


def test_a_machine_changes_its_own_row(guarded: Guarded) -> None:
    assert guarded.told("UPDATE machines SET class_name = class_name") == "1 rows"


def test_a_machine_says_what_it_gave_itself(guarded: Guarded) -> None:
    row = "('mine', 'k', 'build', 'amd64', 'id-lab-1', '', 0, '{}')"
    assert guarded.told(f"INSERT INTO given_images VALUES {row}") == "1 rows"
    assert guarded.told("SELECT * FROM given_images", "lab-2") == "1 rows"


def test_a_sample_is_of_a_turn_that_its_machine_was_given(guarded: Guarded) -> None:
    run = begun(guarded.store, machines=2)  # nobody takes its turns
    try:
        for machine, number in (("lab-1", 7), ("lab-2", 8)):
            guarded.cluster.execute(
                f"INSERT INTO turns SELECT 'given-{number}', campaign_id, 1000 + {number}, 1,"
                f" 'planned', jsonb_set(rest::jsonb, '{{machine}}', '\"id-{machine}\"')::json"
                " FROM turns LIMIT 1",
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
        "CREATE ROLE colleague LOGIN", "GRANT SELECT, UPDATE ON machines TO colleague",
        database=guarded.name,
    )  # fmt: skip
    changed = guarded.told("UPDATE machines SET class_name = class_name", "colleague")
    assert changed == "2 rows"
