"""A shared run's next steps: planned from the store by whichever worker is asked, one at a time.

The run's row is locked while a step is planned; turns, their jobs and the run change together. A
process that dies meanwhile changes nothing, and its lock ends with its connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import Connection

from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import (
    CandidateError,
    InconclusiveError,
    MatrixError,
    SystematicError,
    UsageError,
)
from dsharness.model import (
    Boundary,
    Campaign,
    Finding,
    Prepared,
    RunState,
    Sample,
    SharedRun,
    Turn,
    TurnState,
    Workload,
)
from dslab.campaign_loop import Answers, CampaignKind, turn_of
from dslab.laboratory import Laboratory
from dslab.watcher import Watcher
from dsmany.fleet import (
    FleetMember,
    campaign_id_of,
    fit_for,
    fleet_of,
    free_for,
    lost_to,
    may_advance,
    planned_turns,
    strayed,
)
from dsmany.job_queue import JobQueue
from dsresults.store import Store
from dsresults.store.records import give_up_turns, put_finding, put_turn
from dsresults.store.shared_records import find_run, find_runs, locked_run, write_run
from dssearch.planner import advance, history_of
from dssearch.question import Answer, History, Measure, Question, Search
from dssearch.search_record import choice_of, inputs_of, search_of


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

    def answer(self, answers: Answers, store: Store, *, paired: bool) -> Finding | None:
        """Ask all questions, and tell what is to be kept with their answers.

        It is played again whenever a turn has ended, and left where a question has no answer yet.
        """
        ...

    def introduce(self, candidates: Sequence[str], answers: Answers, store: Store) -> None:
        """Let this machine's lab know candidates that follow from earlier answers."""
        ...

    def lab(
        self, engine: Engine, store: Store, watcher: Watcher
    ) -> AbstractContextManager[Laboratory]: ...


class UnansweredError(Exception):
    """A question has no answer yet: nothing that follows from it can be asked."""


StudyOf = Callable[[SharedRun], SharedStudy]
FAULTS_OF_RUN = (CandidateError, InconclusiveError, MatrixError, SystematicError, UsageError)


def campaigns_of(store: Store, run: SharedRun) -> list[Campaign]:
    """Those that a run has asked so far, in order."""
    found: list[Campaign] = []
    while campaign := store.campaign(campaign_id_of(run, len(found))):
        found.append(campaign)
    return found


def settle_run(store: Store, run: SharedRun) -> None:
    """End what machines have of a run that has ended: what they still measure does not count."""
    for campaign in campaigns_of(store, run):
        store.settle_turns(campaign.id, {turn.machine for turn in store.turns(campaign.id)})


def question_of(campaign: Campaign) -> Question:
    """What a stored campaign asks."""
    return Question(
        series_id=campaign.series_id,
        line=campaign.line,
        workload_id=campaign.workload_id,
        settings_id=campaign.settings_id,
        metric=campaign.metric,
    )


@dataclass(kw_only=True)
class KnownAnswers:
    """``Answers`` that the store has; UnansweredError for the first one that it has not."""

    store: Store
    run: SharedRun
    asked: int = 0

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        del question, workload, search, kind  # the same as when it was planned
        campaign = self.store.campaign(campaign_id_of(self.run, self.asked))
        self.asked += 1
        if campaign is None or campaign.boundary is None:
            raise UnansweredError
        return campaign


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """Plans the turns of shared runs; any number of them may be at work."""

    store: Store
    jobs: JobQueue
    study_of: StudyOf

    def due(self) -> list[str]:
        """The ids of runs that planning could change now."""
        with self.store.database.reading() as connection:
            runs = find_runs(connection, RunState.RUNNING)
        fleet, planned = fleet_of(self.store), planned_turns(self.store, runs)
        return [
            run.id
            for run in runs
            if may_advance(run, fleet, {turn.machine for turn in planned.get(run.id, ())})
        ]

    def advance(self, run_id: str) -> None:
        """Give free machines turns until none is free, or the run has its answers."""
        with self.store.database.reading() as connection:
            seen = find_run(connection, run_id)
        if seen is None or seen.state is not RunState.RUNNING:
            return
        study = self.study_of(seen) if seen.prepared else None  # before the lock: it may be fetched
        with self.store.database.writing() as connection:
            run = locked_run(connection, run_id)
            if run is None or run.state is not RunState.RUNNING:
                return
            try:
                changed = self._advanced(connection, run, study)
            except FAULTS_OF_RUN as error:
                changed = run.model_copy(update={"state": RunState.FAILED, "why": str(error)})
            if changed != run:
                write_run(connection, changed)
        if changed.state is RunState.FAILED:
            settle_run(self.store, changed)

    def _advanced(
        self, connection: Connection, run: SharedRun, study: SharedStudy | None
    ) -> SharedRun:
        fleet = fleet_of(self.store)
        if run.prepared is None:
            return self._first_prepared(connection, run, fleet)
        if study is None:  # it was prepared since: the job that says so comes too
            return run
        planned = _PlannedAnswers(
            plans=self, connection=connection, run=run, prepared=run.prepared, fleet=fleet
        )
        try:
            finding = study.answer(planned, self.store, paired=run.prepared.paired)
        except UnansweredError:
            given = dict.fromkeys((*run.took_part, *planned.given))
            return planned.run.model_copy(
                update={"remaining": planned.remaining, "took_part": tuple(given)}
            )
        if finding is not None:
            put_finding(self.store.database, connection, finding)
        return planned.run.model_copy(update={"state": RunState.DONE, "remaining": 0})

    def _first_prepared(
        self, connection: Connection, run: SharedRun, fleet: Sequence[FleetMember]
    ) -> SharedRun:
        """One machine prepares; another one if it died or was left out."""
        if run.preparing and not lost_to(run, fleet, [run.preparing]):
            return run
        first = next(iter(free_for(run, fleet, (), self._load(preparing=True))), None)
        if first is None:
            return run.model_copy(update={"preparing": ""})
        self.jobs.prepare(connection, run.id, first.id)
        return run.model_copy(update={"preparing": first.id})

    def _load(self, *, preparing: bool = False) -> Counter[str]:
        """How many turns each machine has to take; with runs that it is to be the first for."""
        load = Counter(turn.machine for turn in self.store.planned_turns())
        if preparing:
            with self.store.database.reading() as connection:
                runs = find_runs(connection, RunState.RUNNING)
            load.update(run.preparing for run in runs if run.prepared is None)
        return load

    def free(
        self, run: SharedRun, fleet: Sequence[FleetMember], busy: Collection[str]
    ) -> list[str]:
        """The machines that may have a turn of this run now, the first choice first."""
        return [machine.id for machine in free_for(run, fleet, busy, self._load())]


@dataclass(kw_only=True)
class _PlannedAnswers:
    """``Answers`` of a run: what has none yet gets turns, and is asked for no further."""

    plans: Coordinator
    connection: Connection
    run: SharedRun
    prepared: Prepared
    fleet: Sequence[FleetMember]
    asked: int = 0
    remaining: int = 0
    given: list[str] = field(default_factory=list)  # machines that were given a turn

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        campaign = self._campaign(question, workload, search, kind)
        if campaign.boundary is None:
            search = search_of(campaign) if search.looks else search
            found = self._planned(campaign, question, workload, search)
            if isinstance(found, int):
                self.remaining = found
                raise UnansweredError
            at = _now()
            self.plans.store.finish_campaign(campaign.id, found, at)
            campaign = campaign.model_copy(update={"boundary": found, "finished_at": at})
        return campaign

    def _campaign(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        """The stored campaign of a question, which is stored now if it is new."""
        campaign_id = campaign_id_of(self.run, self.asked)
        self.asked += 1
        if there := self.plans.store.campaign(campaign_id):
            return there
        campaign = Campaign(
            id=campaign_id,
            kind=kind,
            line=question.line,
            series_id=question.series_id,
            workload_id=question.workload_id,
            settings_id=question.settings_id,
            metric=question.metric,
            started_at=_now(),
            fingerprint=_fingerprint(question, workload, search, self.prepared),
            unmeasured=self.prepared.unmeasurable,
            search=choice_of(search),
        )
        self.plans.store.add_campaign(campaign)
        return campaign

    def _planned(
        self, campaign: Campaign, question: Question, workload: Workload, search: Search
    ) -> Boundary | int:
        """Plan a turn for each free machine: the answer, or how many samples are still expected."""
        store, prepared = self.plans.store, self.prepared
        turns, samples = store.turns(campaign.id), store.samples(campaign_id=campaign.id)
        if self._strayed(turns, samples):
            turns, samples = store.turns(campaign.id), store.samples(campaign_id=campaign.id)
        run = self.run
        busy = {turn.machine for turn in turns if turn.state is TurnState.PLANNED}
        if lost := lost_to(run, self.fleet, busy):
            store.settle_turns(campaign.id, lost)
            turns, samples = store.turns(campaign.id), store.samples(campaign_id=campaign.id)
            busy -= lost
        free = self.plans.free(run, self.fleet, busy)
        history = history_of(samples, turns, prepared.unmeasurable, ends_of(campaign, prepared))
        if not search.looks:
            _refuse_missing(question, history)
        remaining = run.remaining
        while free or not busy:
            step = advance(question, search, history, turns)
            if isinstance(step, Answer):
                return step.boundary
            if not isinstance(step, Measure) or not free:
                break
            machine, way = free.pop(0), prepared.procedure.way
            turn = turn_of(campaign.id, step, workload=workload, way=way, machine=machine)
            put_turn(store.database, self.connection, turn)
            self.plans.jobs.take(self.connection, run.id, turn)
            turns.append(turn)
            busy.add(machine)
            self.given.append(machine)
            remaining = step.remaining
        return remaining

    def _strayed(self, turns: Sequence[Turn], samples: Sequence[Sample]) -> bool:
        """Give up the turns whose samples say that they are of another machine or class.

        Each machine looks at its own samples; this is for one whose program does not.
        """
        taken = {(turn.number, turn.attempt): turn for turn in turns}
        reasons: dict[str, str] = {}  # by the id of a turn
        left_out = dict(self.run.left_out)
        names = {member.machine.id: member.machine.name for member in self.fleet}
        for sample in samples:
            turn = taken.get((sample.turn, sample.attempt))
            if turn is None or not (why := strayed(sample, turn.machine, self.prepared.class_name)):
                continue
            reasons[turn.id] = why
            left_out.setdefault(turn.machine, f"{names.get(turn.machine, turn.machine)}: {why}")
        if not reasons:
            return False
        self.run = self.run.model_copy(update={"left_out": left_out})
        with self.plans.store.database.writing() as connection:
            given_up = give_up_turns(connection, reasons)
        if given_up < len(reasons) or not fit_for(self.run, self.fleet):
            raise InconclusiveError("; ".join(left_out.values()))
        return True


def ends_of(campaign: Campaign, prepared: Prepared) -> Mapping[str, str]:
    """What could not be measured before a search over commits began: as on one machine."""
    return prepared.unmeasurable if campaign.kind == "commits" else {}


def _refuse_missing(question: Question, history: History) -> None:
    """InconclusiveError where nothing can be said without a candidate."""
    for name, why in history.unmeasurable.items():
        if name in question.line:
            raise InconclusiveError(f"{name} cannot be measured: {why}")


def _fingerprint(question: Question, workload: Workload, search: Search, prepared: Prepared) -> str:
    """As of a campaign of one machine; the class of machines stands for the machine."""
    inputs: list[object] = [
        question.line,
        question.metric,
        workload.model_dump(mode="json"),
        {each: prepared.identities.get(each) for each in question.line},
        prepared.class_name,
        prepared.procedure.model_dump(mode="json"),
        *inputs_of(search),
    ]
    return content_key(inputs)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
