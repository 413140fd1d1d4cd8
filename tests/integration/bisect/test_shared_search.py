"""Several machines over a real PostgreSQL, with the real queue's jobs and a simulated world.

Jobs are done one by one by the test, so that each way to die or to be asked twice is one line.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from measured import WorldBenches
from postgresql_cluster import Cluster, running_cluster
from sqlalchemy import text
from watchers import RecordingWatcher
from worlds import World

from dsharness.errors import EngineError
from dsharness.model import (
    FleetMachine,
    LdcltWorkload,
    Machine,
    RunState,
    Sample,
    SharedRun,
    Turn,
    TurnState,
)
from dslab.campaign_loop import CampaignKind, CampaignOrder, claimed
from dsmany.attached import RunTold, begin_run, cancel_run
from dsmany.shared_search import campaign_id_of
from dsmany.worker import FleetWorker
from dsresults.store import Store
from dsresults.store.shared_records import CLAIM, find_run, find_turn, put_machine
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question

LINE = tuple("abcdefgh")
STEP = World({name: 1.0 if name < "d" else 1.4 for name in LINE})
WORKLOAD = LdcltWorkload(id="w", title="binds")
QUESTION = Question(series_id="s", line=LINE, workload_id="w", settings_id="default")


@dataclass
class WorldLab(WorldBenches):
    """A lab of a world; ``breaks`` is what this machine's engine does in its next turn."""

    paired: bool = True
    breaks: bool = False

    def ready(self, candidate: str) -> None:
        if self.breaks:
            raise EngineError("podman is gone", hint="install it")
        super().ready(candidate)

    def take(self, turn: Turn) -> Iterable[Sample]:
        for sample in super().take(turn):
            yield sample.model_copy(update={"machine": Machine(id=self.machine)})


@dataclass
class WorldStudy:
    """One question about a world, in labs that the test can reach."""

    labs: dict[str, WorldLab] = field(default_factory=dict)
    machine: str = ""
    kind: CampaignKind = "rows"

    @property
    def questions(self) -> Sequence[tuple[Question, LdcltWorkload]]:
        return [(QUESTION, WORKLOAD)]

    def search(self, number: int, answered: Sequence[Any], *, paired: bool) -> Bayes:
        return Bayes()

    @contextmanager
    def lab(self, engine: Any, store: Store, watcher: Any) -> Iterator[Any]:
        yield self.labs.setdefault(self.machine, WorldLab(STEP, machine=self.machine))


class Fleet:
    """Workers of one process that do what the queue has for them, when the test says so."""

    def __init__(self, store: Store, names: Sequence[str]) -> None:
        self.store = store
        self.labs: dict[str, WorldLab] = {}
        self.told: list[str] = []
        self._claims: dict[str, Any] = {}
        self.workers = {name: self._worker(name) for name in names}

    def _worker(self, name: str) -> FleetWorker:
        machine = FleetMachine(id=name, name=name, class_name="c", since="2026-11-26T12:00:00")
        claim = claimed(self.store, f"{CLAIM}{name}", name)
        claim.__enter__()
        self._claims[name] = claim
        with self.store.database.writing() as connection:
            put_machine(self.store.database, connection, machine)
        study = WorldStudy(labs=self.labs, machine=name)
        return FleetWorker(
            machine=machine, engine=None, store=self.store, study_of=lambda run: study,  # type: ignore[arg-type]
            watcher=RecordingWatcher(), tell=self.told.append,
        )  # fmt: skip

    def dies(self, name: str) -> None:
        self._claims.pop(name).__exit__(None, None, None)
        del self.workers[name]

    def end(self) -> None:
        for name in tuple(self._claims):
            self.dies(name)

    def jobs(self) -> list[Mapping[str, Any]]:
        query = "SELECT id, task_name, queue_name, args FROM procrastinate_jobs ORDER BY id"
        with self.store.database.reading() as connection:
            return [dict(row) for row in connection.execute(text(query)).mappings()]

    def do(self, job: Mapping[str, Any], *, keep: bool = False) -> None:
        """Do a job; ``keep`` it as a worker that dies before it says so."""
        if not keep:
            with self.store.database.writing() as connection:
                connection.execute(
                    text("DELETE FROM procrastinate_jobs WHERE id = :id"), {"id": job["id"]}
                )
        task = job["task_name"].removeprefix("dsbisect.")
        if task == "advance":
            next(iter(self.workers.values())).advance(job["args"]["run"])
            return
        name = job["queue_name"].removeprefix("machine/")
        if name not in self.workers:
            return
        worker, facts = self.workers[name], job["args"]
        worker.prepare(facts["run"]) if task == "prepare" else worker.take(
            facts["run"], facts["turn"]
        )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture
def store(cluster: Cluster) -> Iterator[Store]:
    with Store.open(cluster.url(cluster.new_database())) as opened:
        yield opened


@contextmanager
def fleet_of(store: Store, *names: str) -> Iterator[Fleet]:
    fleet = Fleet(store, names)
    try:
        yield fleet
    finally:
        fleet.end()


def begun(store: Store, machines: int = 2) -> SharedRun:
    return begin_run(store, {"world": "step"}, machines=machines, class_name="")


def now(store: Store, run: SharedRun) -> SharedRun:
    with store.database.reading() as connection:
        found = find_run(connection, run.id)
    assert found is not None
    return found


def turns_of(store: Store, run: SharedRun) -> list[Turn]:
    return store.turns(campaign_id_of(run, 0))


def finished(fleet: Fleet, run: SharedRun) -> SharedRun:
    """Do all jobs until the run has ended."""
    while now(fleet.store, run).state is RunState.RUNNING:
        jobs = fleet.jobs()
        if not jobs:
            next(iter(fleet.workers.values())).reap()
            jobs = fleet.jobs()
        assert jobs, "a run that goes on has a job"
        fleet.do(jobs[0])
    return now(fleet.store, run)


def prove_whole(store: Store, run: SharedRun, after: str = "d") -> None:
    """The step was named, and every turn that counts has one sample of each candidate."""
    campaign = store.campaign(campaign_id_of(run, 0))
    assert campaign is not None
    assert campaign.boundary is not None
    assert campaign.boundary.after == after
    samples = store.samples(campaign_id=campaign.id)
    assert len({sample.id for sample in samples}) == len(samples)
    for turn in store.turns(campaign.id):
        of_it = [s for s in samples if (s.turn, s.attempt) == (turn.number, turn.attempt)]
        if turn.state is TurnState.DONE:
            assert sorted(s.candidate_id for s in of_it) == sorted(turn.candidates)
            assert {s.machine.id for s in of_it} == {turn.machine}  # never split


def test_two_machines_name_what_one_names(store: Store, tmp_path: Path) -> None:
    with Store.open(tmp_path / "one.db") as alone:
        order = CampaignOrder(
            question=QUESTION, workload=WORKLOAD, search=Bayes(), lab=WorldBenches(STEP),
            store=alone,
        )  # fmt: skip
        one = order.run(RecordingWatcher()).boundary
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        assert begun(store).id == run.id  # the same command finds it again
        assert finished(fleet, run).state is RunState.DONE
        watcher = RecordingWatcher()
        told = RunTold(store, WorldStudy(machine="user"), watcher)
        told.until_ended(run.id)
    assert one is not None
    prove_whole(store, run, one.after or "")
    assert {turn.machine for turn in turns_of(store, run)} == {"a", "b"}
    assert watcher.names.count("answered") == 1
    assert watcher.names.count("sampled") == len(store.samples())


def test_a_job_that_comes_twice_changes_nothing(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        for _ in range(60):
            jobs = fleet.jobs()
            if not jobs:
                break
            fleet.do(jobs[0], keep=True)
            fleet.do(jobs[0])
        finished(fleet, run)
    prove_whole(store, run)


def test_what_a_dead_machine_had_goes_to_another(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        while not all(any(t.machine == n for t in turns_of(store, run)) for n in "ab"):
            fleet.do(fleet.jobs()[0])
        (lost,) = [
            t for t in turns_of(store, run) if t.machine == "a" and t.state is TurnState.PLANNED
        ]
        fleet.dies("a")
        finished(fleet, run)
        with store.database.reading() as connection:
            ended = find_turn(connection, lost.id)
        assert ended is not None
        assert ended.state is TurnState.GIVEN_UP
    prove_whole(store, run)


def test_a_machine_that_breaks_is_left_out_with_its_reason(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        fleet.labs["b"] = WorldLab(STEP, machine="b", breaks=True)
        ended = finished(fleet, run)
        assert ended.state is RunState.DONE
        assert "podman is gone" in ended.left_out["b"]
    prove_whole(store, run)


def test_a_machine_with_other_candidates_is_left_out(store: Store) -> None:
    """What it would measure is something else, so its turn is another's."""
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        fleet.labs["b"] = WorldLab(STEP, machine="b", identities={"a": "another image"})
        ended = finished(fleet, run)
        assert "candidates" in ended.left_out["b"]
        assert {s.machine.id for s in store.samples()} == {"a"}
    prove_whole(store, run)


def test_without_a_machine_a_run_is_inconclusive_with_the_reasons(store: Store) -> None:
    with fleet_of(store, "a") as fleet:
        run = begun(store)
        fleet.labs["a"] = WorldLab(STEP, machine="a", breaks=True)
        ended = finished(fleet, run)
    assert ended.state is RunState.FAILED
    assert "podman is gone" in ended.why


def test_a_cancelled_run_keeps_its_samples_and_asks_for_nothing(store: Store) -> None:
    with fleet_of(store, "a", "b") as fleet:
        run = begun(store)
        while not store.samples():
            fleet.do(fleet.jobs()[0])
        taken = len(store.samples())
        assert cancel_run(store, run)
        assert not cancel_run(store, run)
        while jobs := fleet.jobs():
            fleet.do(jobs[0])
    assert len(store.samples()) == taken
    assert now(store, run).state is RunState.CANCELLED


@pytest.mark.parametrize("seed", range(3))
def test_any_order_of_jobs_deaths_and_repeats_gives_the_answer(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    with fleet_of(store, "a", "b", "c") as fleet:
        run = begun(store, machines=3)
        while now(store, run).state is RunState.RUNNING:
            jobs = fleet.jobs()
            if not jobs or chance.random() < 0.1:
                chance.choice(list(fleet.workers.values())).reap()
                continue
            fleet.do(chance.choice(jobs), keep=chance.random() < 0.2)
            if len(fleet.workers) > 1 and chance.random() < 0.03:
                fleet.dies(chance.choice(list(fleet.workers)))
    prove_whole(store, run)
