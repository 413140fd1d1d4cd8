"""A shared run as its user sees it: begun, watched, cancelled. All of it is in the store."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue
from sqlalchemy import Connection

from dsharness.content_key import content_key
from dsharness.errors import InconclusiveError, StoppedError, StoreError, UpgradedError, UsageError
from dsharness.model import Campaign, FleetMachine, RunState, SharedRun, Turn, TurnState
from dslab.observer import Observer
from dsmany.fleet import FleetMember, awaits_more, fit_for, fleet_of
from dsmany.job_queue import JobQueue
from dsmany.shared_answers import campaigns_of, ends_of, settle_run
from dsmany.shared_search import SharedStudy
from dsresults.store import Store
from dsresults.store.documents import change_document, find_documents, get_document, put_document
from dssearch.planner import history_of
from dssearch.question import Measure, Outlook, Wanted
from dssearch.search_record import STATISTICAL, question_of, search_of

LOOK_S = 0.5


def begin_run(
    store: Store,
    request: Mapping[str, JsonValue],
    *,
    machines: int,
    class_name: str,
    at_least: int = 1,
) -> SharedRun:
    """The run of this request, under way or new; of a command given again the numbers hold."""
    jobs = JobQueue.of(store)
    key = _key(request, class_name)
    with store.database.writing() as connection:
        running = find_documents(
            store.database, connection, SharedRun, of=(key,), state=RunState.RUNNING
        )
        run = next(iter(running), None)
        if run is None:
            run = SharedRun(
                id=str(uuid.uuid4()),
                request_key=key,
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                request=dict(request),
                machines=machines,
                at_least=at_least,
                class_name=class_name,
            )
            put_document(connection, run)
        else:
            run = _with_numbers(connection, run, {"machines": machines, "at_least": at_least})
        jobs.advance(connection, run.id)
    return run


def _with_numbers(
    connection: Connection, known_run: SharedRun, numbers: dict[str, int]
) -> SharedRun:
    run = get_document(connection, SharedRun, known_run.id, lock=True) or known_run
    changed = run.model_copy(update=numbers)
    if changed != run:
        change_document(connection, changed)
    return changed


def answered_runs(
    store: Store, request: Mapping[str, JsonValue], *, class_name: str
) -> list[SharedRun]:
    """Return the runs of this request that have their answers, the newest first."""
    key = _key(request, class_name)
    return store.find(SharedRun, of=(key,), state=RunState.DONE)[::-1]


def _key(request: Mapping[str, JsonValue], class_name: str) -> str:
    return content_key([dict(request), class_name])


def named_run(store: Store, start: str) -> SharedRun:
    """Return the one run whose id begins so; UsageError with those that there are."""
    runs = store.find(SharedRun)
    runs_named = [run for run in runs if run.id.startswith(start)]
    if len(runs_named) != 1:
        latest = ", ".join(f"{run.id[:8]} ({run.state})" for run in runs[-5:])
        raise UsageError(
            f"{len(runs_named)} runs in {store} begin with {start!r}",
            hint=f"the latest: {latest}" if latest else "there are none yet",
        )
    return runs_named[0]


def cancel_run(store: Store, run: SharedRun) -> bool:
    """End a run without an answer; False if it had ended before. Its samples stay."""
    with store.database.writing() as connection:
        now = get_document(connection, SharedRun, run.id, lock=True)
        if now is None or now.state is not RunState.RUNNING:
            return False
        change_document(connection, now.model_copy(update={"state": RunState.CANCELLED}))
    settle_run(store, run)
    return True


def until_answered(
    store: Store, run: SharedRun, study: SharedStudy, observer: Observer
) -> tuple[Campaign, ...]:
    """Return what a run has asked, once it has its answers; Ctrl-C leaves it to the machines."""
    run_watch = RunTold(store, study, observer)
    try:
        ended_run = run_watch.until_ended(run.id)
    except KeyboardInterrupt as error:
        raise detached(run) from error
    refuse_unanswered(ended_run)
    return run_watch.campaigns


def detached(run: SharedRun) -> StoppedError:
    """Return the error of a user who no longer waits."""
    return StoppedError(
        f"detached: the machines go on with run {run.id}",
        hint=f"`dsbisect machines attach {run.id[:8]}` shows it again, "
        "`dsbisect machines cancel` ends it",
    )


class RunTold:
    """Tells an observer what is new in a run, each thing once."""

    def __init__(self, store: Store, study: SharedStudy, observer: Observer) -> None:
        self._store, self._study, self._observer = store, study, observer
        self._known: set[str] = set()
        self._state = ""
        self.campaigns: tuple[Campaign, ...] = ()

    def until_ended(self, run_id: str) -> SharedRun:
        """Tell until the run has ended, however it does."""
        while True:
            run = self.look(run_id)
            if run is not None:
                return run
            time.sleep(LOOK_S)

    def look(self, run_id: str) -> SharedRun | None:
        """Tell what is new; the run, if it has ended."""
        rows = self._study.begins_with
        if self._new("begin"):
            self._observer.begin(rows, self._study.questions)
        try:
            with self._store.database.reading() as connection:
                self._store.database.refuse_upgraded(connection)
                run = get_document(connection, SharedRun, run_id)
            if run is None:
                raise UsageError(f"{self._store} has no run {run_id}", hint="give it again")
            self._tell(run, rows)
        except UpgradedError:
            raise
        except StoreError as error:
            self._say(rows[0], f"the database does not answer: {error.message}")
            return None
        return None if run.state is RunState.RUNNING else run

    def _tell(self, run: SharedRun, rows: tuple[str, ...]) -> None:
        fleet = fleet_of(self._store)
        names = {member.machine.id: member.machine.name for member in fleet}
        unreadable = {member.machine.id: member.unreadable for member in fleet if member.unreadable}
        for machine, why in {**unreadable, **run.left_out}.items():
            if self._new(f"left out {machine}"):
                self._observer.preparing(names.get(machine, machine), f"left out: {why}")
        doing = _doing(run, fleet, names)
        if not run.answered:
            self._say(rows[0], doing)
        if run.prepared is not None:
            self._tell_prepared(run.unmeasurable, rows)
        self._tell_campaigns(run, names)
        if run.answered:
            self._say(rows[0], doing)

    def _tell_prepared(self, failed: Mapping[str, str], rows: tuple[str, ...]) -> None:
        for row in rows:
            if self._new(f"prepared {row}"):
                if row in failed:
                    self._observer.failed(row, failed[row])
                else:
                    self._observer.prepared(row)

    def _tell_campaigns(self, run: SharedRun, names: Mapping[str, str]) -> None:
        self.campaigns = tuple(campaigns_of(self._store, run))
        for campaign in self.campaigns:
            self._tell_turns(run, campaign, names)
            if campaign.boundary is not None and self._new(f"answer {campaign.id}"):
                self._observer.answered(campaign.boundary)

    def _tell_turns(self, run: SharedRun, campaign: Campaign, names: Mapping[str, str]) -> None:
        samples = self._store.samples(campaign_id=campaign.id)
        for turn in self._store.turns(campaign.id):
            if self._new(turn.id):
                step = Measure(
                    turn=turn.number,
                    attempt=turn.attempt,
                    candidates=turn.candidates,
                    why=f"{', '.join(turn.candidates)} on {names.get(turn.machine, turn.machine)}",
                    remaining=run.remaining,
                    outlook=self._outlook(run, campaign, turn),
                )
                self._observer.step(question_of(campaign), step)
            for sample in samples:
                of_it = (sample.turn, sample.attempt) == (turn.number, turn.attempt)
                if of_it and self._new(sample.id):
                    self._observer.sampled(sample)
            for row, why in turn.refused.items():
                if self._new(f"refused {row}"):
                    self._observer.unmeasurable(row, why)

    def _outlook(self, run: SharedRun, campaign: Campaign, turn: Turn) -> Outlook | None:
        """What a search knows before a turn that is under way; of an earlier one nobody asks."""
        looks = campaign.search.name == STATISTICAL
        if turn.state is not TurnState.PLANNED or not looks or run.prepared is None:
            return None
        history = history_of(
            self._store.samples(campaign_id=campaign.id),
            self._store.turns(campaign.id),
            run.prepared.labs[campaign.lab].unmeasurable,
            ends_of(campaign, run.prepared),
        )
        step = search_of(campaign).next_step(question_of(campaign), history)
        return step.outlook if isinstance(step, Wanted) else None

    def _new(self, subject: str) -> bool:
        new = subject not in self._known
        self._known.add(subject)
        return new

    def _say(self, row: str, state: str) -> None:
        """Tell a state that lasts once."""
        if state and state != self._state:
            self._observer.preparing(row, state)
        self._state = state


def _doing(run: SharedRun, fleet: Sequence[FleetMember], names: Mapping[str, str]) -> str:
    """What a run waits for, or what one machine does for all; empty while turns are taken."""
    if run.unprofiled:
        return f"not profiled: {run.unprofiled}"
    if run.state is not RunState.RUNNING:
        return ""
    fit = fit_for(run, fleet)
    has_begun = not awaits_more(run, fleet)
    if not fit or not has_begun:
        return _awaited(1 if has_begun else run.at_least, run.class_name, fit)
    if run.alone:
        return f"{'profiled' if run.answered else 'prepared'} by {names.get(run.alone, run.alone)}"
    if len(fit) < run.at_least:
        names_left = ", ".join(machine.name for machine in fit)
        return (
            f"goes on with {names_left} alone, though at least {run.at_least} machines were "
            "asked for"
        )
    return ""


def _awaited(number: int, class_name: str, fit: Sequence[FleetMachine]) -> str:
    """Return how many machines a run waits for, and how many are there, of which class."""
    if number == 1:
        return "waiting for a machine: `dsbisect machines` shows who is there"
    presence = f"{len(fit)} there, of class {fit[0].class_name}" if fit else "none is there"
    return (
        f"waiting for {number} machines of {class_name or 'one class'}: {presence}; "
        "`dsbisect machines` shows all"
    )


def refuse_unanswered(run: SharedRun) -> None:
    """Return an error for a run that ended without answers."""
    if run.state is RunState.CANCELLED:
        raise StoppedError(
            f"run {run.id} was cancelled; every finished sample is stored",
            hint="the same command begins a new one",
        )
    if run.state is RunState.FAILED:
        raise InconclusiveError(
            f"run {run.id} ended without an answer: {run.why}",
            hint="remove the reason, then give the same command again",
        )
