"""A shared run's next steps: planned from the store by whichever worker is asked, one at a time.

The run's row is locked while a step is planned; turns, their jobs and the run change together. A
process that dies meanwhile changes nothing, and its lock ends with its connection.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from sqlalchemy import Connection

from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.errors import DsbisectError
from dsharness.model import Boundary, Campaign, Prepared, RunState, SharedRun, TurnState, Workload
from dsharness.model.campaign import NAMESPACE
from dslab.campaign_loop import CampaignKind, turn_of
from dslab.laboratory import Laboratory
from dslab.watcher import Watcher
from dsmany.fleet import FleetMember, fleet_of, free_for, lost_to
from dsmany.job_queue import JobQueue
from dsresults.store import Store
from dsresults.store.records import put_turn
from dsresults.store.shared_records import find_runs, locked_run, write_run
from dssearch.planner import advance, history_of
from dssearch.question import Answer, Measure, Question, Search
from dssearch.search_record import choice_of, inputs_of, search_of


class SharedStudy(Protocol):
    """What a run asks, and how its candidates are made: read from its request."""

    @property
    def kind(self) -> CampaignKind: ...

    @property
    def questions(self) -> Sequence[tuple[Question, Workload]]:
        """They are answered one after the other."""
        ...

    def search(self, number: int, answered: Sequence[Campaign], *, paired: bool) -> Search:
        """The search for that question; earlier answers say where to look first."""
        ...

    def lab(
        self, engine: Engine, store: Store, watcher: Watcher
    ) -> AbstractContextManager[Laboratory]: ...


StudyOf = Callable[[SharedRun], SharedStudy]


def campaign_id_of(run: SharedRun, number: int) -> str:
    """Of its question of that number; whoever asks first stores the campaign."""
    return str(uuid.uuid5(NAMESPACE, f"{run.id}/question/{number}"))


@dataclass(frozen=True, kw_only=True)
class Coordinator:
    """Plans the turns of shared runs; any number of them may be at work."""

    store: Store
    jobs: JobQueue
    study_of: StudyOf

    def advance_all(self) -> None:
        """Plan for every run: what a dead machine had goes to others."""
        with self.store.database.reading() as connection:
            runs = find_runs(connection, RunState.RUNNING)
        for run in runs:
            self.advance(run.id)

    def advance(self, run_id: str) -> None:
        """Give free machines turns until none is free, or the run has its answers."""
        with self.store.database.writing() as connection:
            run = locked_run(connection, run_id)
            if run is None or run.state is not RunState.RUNNING:
                return
            try:
                changed = self._advanced(connection, run)
            except DsbisectError as error:
                changed = run.model_copy(update={"state": RunState.FAILED, "why": str(error)})
            if changed != run:
                write_run(connection, changed)

    def _advanced(self, connection: Connection, run: SharedRun) -> SharedRun:
        fleet = fleet_of(self.store)
        if run.prepared is None:
            return self._first_prepared(connection, run, fleet)
        study, answered = self.study_of(run), list[Campaign]()
        for number, (question, workload) in enumerate(study.questions):
            search = study.search(number, answered, paired=run.prepared.paired)
            campaign = self._campaign(run, study, number, search)
            if campaign.boundary is None:
                asked = _Asked(
                    run=run, prepared=run.prepared, campaign=campaign, question=question,
                    workload=workload, search=search_of(campaign) if search.looks else search,
                )  # fmt: skip
                found = self._planned(connection, asked, fleet)
                if isinstance(found, int):
                    return run.model_copy(update={"remaining": found})
                at = _now()
                self.store.finish_campaign(campaign.id, found, at)
                campaign = campaign.model_copy(update={"boundary": found, "finished_at": at})
            answered.append(campaign)
        return run.model_copy(update={"state": RunState.DONE, "remaining": 0})

    def _first_prepared(
        self, connection: Connection, run: SharedRun, fleet: Sequence[FleetMember]
    ) -> SharedRun:
        """One machine prepares; another one if it died or was left out."""
        if run.preparing and not lost_to(run, fleet, [run.preparing]):
            return run
        first = next(iter(free_for(run, fleet, ())), None)
        if first is None:
            return run.model_copy(update={"preparing": ""})
        self.jobs.prepare(connection, run.id, first.id)
        return run.model_copy(update={"preparing": first.id})

    def _campaign(
        self, run: SharedRun, study: SharedStudy, number: int, search: Search
    ) -> Campaign:
        """The stored campaign of a question, which is stored now if it is new."""
        question, workload = study.questions[number]
        prepared = run.prepared
        assert prepared is not None  # noqa: S101 - asked before
        campaign_id = campaign_id_of(run, number)
        if there := self.store.campaign(campaign_id):
            return there
        campaign = Campaign(
            id=campaign_id,
            kind=study.kind,
            line=question.line,
            series_id=question.series_id,
            workload_id=question.workload_id,
            settings_id=question.settings_id,
            metric=question.metric,
            started_at=_now(),
            fingerprint=_fingerprint(question, workload, search, prepared),
            unmeasured=prepared.unmeasurable,
            search=choice_of(search),
        )
        self.store.add_campaign(campaign)
        return campaign

    def _planned(
        self, connection: Connection, asked: _Asked, fleet: Sequence[FleetMember]
    ) -> Boundary | int:
        """Plan a turn for each free machine: the answer, or how many samples are still expected."""
        run, campaign_id, prepared = asked.run, asked.campaign.id, asked.prepared
        turns = self.store.turns(campaign_id)
        busy = {turn.machine for turn in turns if turn.state is TurnState.PLANNED}
        if lost := lost_to(run, fleet, busy):
            self.store.settle_turns(campaign_id, lost)
            turns = self.store.turns(campaign_id)
            busy -= lost
        free = list(free_for(run, fleet, busy))
        samples = self.store.samples(campaign_id=campaign_id)
        history = history_of(samples, turns, prepared.unmeasurable, {})
        remaining = run.remaining
        while free or not busy:
            step = advance(asked.question, asked.search, history, turns)
            if isinstance(step, Answer):
                return step.boundary
            if not isinstance(step, Measure) or not free:
                break
            machine = free.pop(0).id
            turn = turn_of(
                campaign_id, step, workload=asked.workload,
                way=prepared.procedure.way, machine=machine,
            )  # fmt: skip
            put_turn(self.store.database, connection, turn)
            self.jobs.take(connection, run.id, turn)
            turns.append(turn)
            busy.add(machine)
            remaining = step.remaining
        return remaining


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """One question of a run, with all that a step of it is planned from."""

    run: SharedRun
    prepared: Prepared
    campaign: Campaign
    question: Question
    workload: Workload
    search: Search


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
