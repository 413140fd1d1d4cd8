"""Workers of one process do the real queue's jobs in a simulated world when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from measured import WorldBenches
from observers import RecordingObserver
from pydantic import JsonValue
from sqlalchemy import text
from worlds import World

from dsharness.errors import EngineError, InstanceError
from dsharness.model import (
    CampaignKind,
    CpuProfile,
    Fact,
    Finding,
    FleetMachine,
    Image,
    LdcltWorkload,
    Machine,
    Prepared,
    RunState,
    Sample,
    SharedRun,
    Turn,
    TurnState,
    Workload,
)
from dslab.campaign_loop import LabAnswers, Together, leased
from dslab.spent_time import SpentTime
from dslab.step_profiles import profile_steps, sides_of
from dsmany.attached import begin_run
from dsmany.fleet import campaign_id_of, class_of
from dsmany.shared_answers import asked_together, campaigns_of
from dsmany.worker import FleetWorker
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dsresults.store.fleet_records import LEASE, put_machine
from dssearch.bayes.bayes_search import Bayes
from dssearch.planner import Rounds
from dssearch.question import Question, Search

Line = tuple[str, ...]
LINE: Line = tuple("abcdefgh")
FACTS: dict[str, Fact] = {
    "cpu_model": "EPYC", "architecture": "x86_64", "kernel": "6.1.0-9", "rootless": False,
    "runtime": "crun", "cgroups": "v2",
}  # fmt: skip
CLASS = class_of(Machine(id="", facts=FACTS))
LOG = Path("/logs/builds/c.log")
STEP = World({name: 1.0 if name < "d" else 1.4 for name in LINE})
WORKLOAD = LdcltWorkload(id="w", title="binds")
QUESTION = Question(series_id="s", line=LINE, workload_id="w", settings_id="default")


def nothing() -> None:
    """What happens before a sample, as a rule."""


@dataclass
class WorldLab(WorldBenches):
    """A lab of a world; ``breaks`` is what this machine's engine does in its next turn."""

    paired: bool = True
    breaks: bool = False
    failures: Mapping[str, Any] = field(default_factory=dict)
    before_sample: Callable[[], None] = field(default=nothing)
    spent: SpentTime = field(default_factory=SpentTime)
    facts: Mapping[str, Fact] = field(default_factory=lambda: FACTS)

    def ready(self, candidate: str) -> None:
        if self.breaks:
            raise EngineError("podman is gone", hint="install it")
        if candidate in self.refuses:
            raise InstanceError("unbuildable: no such header", log=LOG)

    def images_of(self, candidates: Sequence[str]) -> list[Image]:
        return [Image(candidate_id=name, reference="r", key="k") for name in candidates]

    def take(self, turn: Turn) -> Iterable[Sample]:
        for sample in super().take(turn):
            with self.spent.on("runs"):
                self.before_sample()
            yield sample.model_copy(
                update={"machine": Machine(id=self.machine, facts=dict(self.facts))}
            )


@dataclass(frozen=True)
class WorldInspections:
    """Profiles of a world's candidates."""

    lab: WorldLab

    def profile(self, candidate: str, workload: Workload) -> CpuProfile:
        self.lab.before_sample()
        return CpuProfile(
            candidate_id=candidate, workload_id=workload.id, event="cpu-clock", operations=10,
            cpu_us_per_op=5.0, stacks={self.lab.machine: 4},
        )  # fmt: skip

    def unasked(self, candidate: str, workload: Workload) -> None:
        """Servers of a world write no log, and no other tool asks them."""

    server_times = second_tool = function_counts = heap_growth = thread_waits = unasked


@dataclass
class WorldStudy:
    """One question about a world, in labs that the test can reach."""

    labs: dict[str, WorldLab] = field(default_factory=dict)
    machine: str = ""
    proved: bool = False  # further questions follow from the answer of the first, all at once
    together: Together = asked_together
    begins_with: tuple[str, ...] = LINE
    lock: str = ""
    questions: int = 1
    profiled: bool = False
    introduced: list[Sequence[str]] = field(default_factory=list)
    world: World = field(default_factory=lambda: STEP)
    question: Question = QUESTION
    search: Search = field(default_factory=Bayes)

    def answer(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None
    ) -> Finding | None:
        ask = answers.within("")
        found = ask(self.question, WORKLOAD, self.search, "rows").boundary
        if self.proved and found is not None and found.after is not None:
            first, *_, last = self.question.line
            before, after = found.before or "", found.after
            asks: tuple[tuple[Line, Search, CampaignKind], ...] = (
                ((before, after), Rounds.of(2), "measure"),
                ((first, after), self.search, "commits"),
                ((before, last), self.search, "commits"),
            )
            self.together([
                partial(ask, replace(self.question, line=line), WORKLOAD, search, kind)
                for line, search, kind in asks
            ])  # fmt: skip
        return None

    def prepare(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None, opener: Any
    ) -> dict[str, JsonValue]:
        return {"lab": opener.open("", self.world_lab).machine}

    def introduce(self, candidates: Sequence[str], answers: LabAnswers, store: Store) -> None:
        self.introduced.append(candidates)
        self.answer(answers, store, prepared=None)

    def profile(
        self, answers: LabAnswers, lab: Any, store: Store, observer: Any
    ) -> Sequence[ProfilePair]:
        found = answers.within("")(self.question, WORKLOAD, self.search, "rows")
        for name in sides_of(found):
            lab.ready(name)
        inspections: Any = WorldInspections(lab)
        return profile_steps([found], [WORKLOAD], inspections, store, observer)

    def lab(
        self, name: str, answers: LabAnswers, store: Store, **around: Any
    ) -> AbstractContextManager[Any]:
        del name, answers, store, around
        return self.world_lab()

    @contextmanager
    def world_lab(self) -> Iterator[Any]:
        yield self.labs.setdefault(self.machine, WorldLab(self.world, machine=self.machine))


class Fleet:
    """Workers of one process that do what the queue has for them, when the test says so."""

    def __init__(
        self,
        store: Store,
        names: Sequence[str],
        *,
        proved: bool = False,
        study: WorldStudy | None = None,
    ) -> None:
        self.store = store
        self._study = study or WorldStudy(proved=proved)
        self.labs: dict[str, WorldLab] = {}
        self.told: list[str] = []
        self._leases: dict[str, Any] = {}
        self.workers = {name: self._worker(name) for name in names}

    def _worker(self, name: str) -> FleetWorker:
        machine = FleetMachine(id=name, name=name, class_name=CLASS, since="2026-11-26T12:00:00")
        lease = leased(self.store, f"{LEASE}{name}", name)
        lease.__enter__()
        self._leases[name] = lease
        with self.store.database.writing() as connection:
            put_machine(connection, machine)
        study = replace(self._study, labs=self.labs, machine=name)
        return FleetWorker(
            machine=machine, engine=None, store=self.store, study_of=lambda run: study,  # type: ignore[arg-type]
            observer=RecordingObserver(), tell=self.told.append,
        )  # fmt: skip

    def dies(self, name: str) -> None:
        self._leases.pop(name).__exit__(None, None, None)
        del self.workers[name]

    def comes(self, name: str) -> None:
        """A new process of a machine; first it ends what an earlier one left begun."""
        self.workers[name] = self._worker(name)
        self.workers[name]._settle()

    def end(self) -> None:
        for name in tuple(self._leases):
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
        do = {"prepare": worker.prepare, "profile": worker.profile, "take": worker.take}
        do[task](**{f"{kind}_id": name for kind, name in facts.items()})


def begun(store: Store, machines: int = 2) -> SharedRun:
    return begin_run(store, {"world": "step"}, machines=machines, class_name="")


def now(store: Store, run: SharedRun) -> SharedRun:
    stored = store.get(SharedRun, run.id)
    assert stored is not None
    return stored


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
    for each in campaigns_of(store, run):
        prove_turns(store, each.id)


def prove_turns(store: Store, campaign_id: str) -> None:
    """None of the samples is lost, doubled or split over machines."""
    samples = store.samples(campaign_id=campaign_id)
    assert len({sample.id for sample in samples}) == len(samples)
    for turn in store.turns(campaign_id):
        of_it = [s for s in samples if (s.turn, s.attempt) == (turn.number, turn.attempt)]
        if turn.state is TurnState.DONE:
            assert sorted(s.candidate_id for s in of_it) == sorted(turn.candidates)
            assert {s.machine.id for s in of_it} == {turn.machine}  # never split
