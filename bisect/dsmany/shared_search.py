"""A shared run's next steps: planned from the store by whichever worker is asked, one at a time.

The run's row is locked while a step is planned; turns, their jobs and the run change together. A
process that dies meanwhile changes nothing, and its lock ends with its connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pydantic import JsonValue
from sqlalchemy import Connection

from dsharness.containers.engine import Engine
from dsharness.errors import (
    CandidateError,
    InconclusiveError,
    MatrixError,
    SystematicError,
    UsageError,
)
from dsharness.model import Finding, Prepared, RunState, SharedRun
from dslab.campaign_loop import LabAnswers
from dslab.known_answers import UnansweredError, UnpreparedError
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dsmany.fleet import (
    FleetMember,
    awaits_more,
    fleet_of,
    free_for,
    lost_to,
    may_advance,
    planned_turns,
)
from dsmany.job_queue import JobQueue
from dsmany.shared_answers import PlannedAnswers, settle_run
from dsresults.profile_pair import ProfilePair
from dsresults.store import Store
from dsresults.store.documents import change_document, get_document, put_document

Place = Callable[[], AbstractContextManager[Laboratory]]


class SharedStudy(Protocol):
    """What a run asks, and how its candidates are made: read from its request."""

    @property
    def begins_with(self) -> tuple[str, ...]:
        """The candidates that each machine prepares before its first turn."""
        ...

    @property
    def questions(self) -> int:
        """How many there are, as far as that is known before the first answer."""
        ...

    @property
    def lock(self) -> str:
        """What its rows are locked at on this machine, as text; the other machines' follow."""
        ...

    def answer(self, answers: LabAnswers, store: Store, *, prepared: Prepared) -> Finding | None:
        """Ask all questions, and tell what is to be kept with their answers.

        It is played again whenever a turn has ended, and left where a question has no answer yet;
        UnpreparedError where a machine has to prepare what comes next.
        """
        ...

    def prepare(
        self, answers: LabAnswers, store: Store, *, prepared: Prepared | None, opener: LabOpener
    ) -> dict[str, JsonValue]:
        """Open the labs of what is asked next; return what is seen of servers, for all machines."""
        ...

    @property
    def profiled(self) -> bool:
        """Whether both sides of what is found are to be profiled."""
        ...

    def profile(
        self, answers: LabAnswers, lab: Laboratory, store: Store, observer: Observer
    ) -> Sequence[ProfilePair]:
        """Profile both sides of what was found, once all is answered; what is whole is stored."""
        ...

    def introduce(self, candidates: Sequence[str], answers: LabAnswers, store: Store) -> None:
        """Let this machine's lab know candidates that follow from earlier answers."""
        ...

    def lab(
        self, name: str, answers: LabAnswers, store: Store, *, prepared: Prepared, opener: LabOpener
    ) -> AbstractContextManager[Laboratory]:
        """Return this machine's lab of that name."""
        ...


class LabOpener(Protocol):
    """Opens labs on a machine, one after the other, and notes what was found in them."""

    @property
    def engine(self) -> Engine: ...

    @property
    def observer(self) -> Observer: ...

    def open(self, name: str, place: Place) -> Laboratory:
        """The one that is open, if it is that one; ``place`` opens it otherwise."""
        ...


StudyOf = Callable[[SharedRun], SharedStudy]
FAULTS_OF_RUN = (CandidateError, InconclusiveError, MatrixError, SystematicError, UsageError)


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """Plans the turns of shared runs; any number of them may be at work."""

    store: Store
    jobs: JobQueue
    study_of: StudyOf

    def due(self) -> list[str]:
        """Return the ids of runs that planning could change now."""
        runs = self.store.find(SharedRun, state=RunState.RUNNING)
        fleet, planned = fleet_of(self.store), planned_turns(self.store, runs)
        return [
            run.id
            for run in runs
            if may_advance(run, fleet, {turn.machine for turn in planned.get(run.id, ())})
        ]

    def advance(self, run_id: str) -> None:
        """Give free machines turns until none is free, or the run has its answers."""
        known_run = self.store.get(SharedRun, run_id)
        if known_run is None or known_run.state is not RunState.RUNNING:
            return
        study = (
            None if known_run.unprepared else self.study_of(known_run)
        )  # before the lock: it may be fetched
        with self.store.database.writing() as connection:
            run = get_document(connection, SharedRun, run_id, lock=True)
            if run is None or run.state is not RunState.RUNNING:
                return
            try:
                changed = self._advanced(connection, run, study)
            except FAULTS_OF_RUN as error:
                changed = run.model_copy(update={"state": RunState.FAILED, "why": str(error)})
            if changed != run:
                change_document(connection, changed)
        if changed.state is RunState.FAILED:
            settle_run(self.store, changed)

    def _advanced(
        self, connection: Connection, run: SharedRun, study: SharedStudy | None
    ) -> SharedRun:
        fleet = fleet_of(self.store)
        if run.alone is not None:
            return self._given_to_one(connection, run, fleet)
        assert run.prepared is not None  # noqa: S101 - or it would be prepared by one
        if study is None:  # it was prepared since: the job that says so comes too
            return run
        planned = PlannedAnswers.of(
            self.store, self.jobs, connection, run, fleet, partial(self.free, fleet)
        )
        try:
            finding = study.answer(planned, self.store, prepared=run.prepared)
        except UnpreparedError:
            changes = {"unprepared": True, "preparing": "", "remaining": 0}
            return self._given_to_one(connection, planned.run.model_copy(update=changes), fleet)
        except UnansweredError:
            machines = dict.fromkeys((*run.took_part, *planned.give_turns()))
            return planned.run.model_copy(
                update={"remaining": planned.remaining, "took_part": tuple(machines)}
            )
        if finding is not None:
            put_document(connection, finding)
        answered_run = planned.run.model_copy(update={"answered": study.profiled, "remaining": 0})
        if study.profiled:
            return self._given_to_one(connection, answered_run, fleet)
        return answered_run.model_copy(update={"state": RunState.DONE})

    def _given_to_one(
        self, connection: Connection, run: SharedRun, fleet: Sequence[FleetMember]
    ) -> SharedRun:
        """Let one machine prepare, or profile; another one if it died or was left out."""
        if run.alone and not lost_to(run, fleet, [run.alone]):
            return run
        if awaits_more(run, fleet):
            return run
        first = next(iter(free_for(run, fleet, (), self._load(alone=True))), None)
        if first is None:
            return run.given_to("")
        give = self.jobs.profile if run.answered else self.jobs.prepare
        give(connection, run.id, first.id)
        return run.given_to(first.id)

    def _load(self, *, alone: bool = False) -> Counter[str]:
        """How many turns each machine has to take; with runs that it does something alone for."""
        load = Counter(turn.machine for turn in self.store.planned_turns())
        if alone:
            runs = self.store.find(SharedRun, state=RunState.RUNNING)
            load.update(run.alone for run in runs if run.alone)
        return load

    def free(
        self, fleet: Sequence[FleetMember], run: SharedRun, busy: Collection[str]
    ) -> list[str]:
        """Return the machines that may have a turn of this run now, the first choice first."""
        return [machine.id for machine in free_for(run, fleet, busy, self._load())]
