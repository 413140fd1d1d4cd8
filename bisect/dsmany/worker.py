"""A machine of the fleet: takes the turns that are its own, and plans for all when it is asked.

Whatever goes wrong here is this machine's matter: its turn goes to another one, the machine is left
out of that run, and the reason is kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from dsharness.containers.engine import Engine
from dsharness.errors import (
    BusyError,
    DsbisectError,
    MatrixError,
    StoppedError,
    StoreError,
    SystematicError,
    UnreadableError,
    UpgradedError,
    UsageError,
    with_log_on,
)
from dsharness.model import (
    FleetMachine,
    Prepared,
    PreparedLab,
    RunState,
    SharedRun,
    Turn,
    TurnState,
)
from dsharness.process.command import stop_all
from dsharness.process.deadline import check_request
from dslab.campaign_loop import LabAnswers, Lease, TurnTaker, leased
from dslab.known_answers import KnownAnswers, UnansweredError
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dsmany.fleet import BEAT_S, fit_for, fleet_of, planned_turns
from dsmany.job_queue import JobQueue
from dsmany.shared_answers import campaigns_of, ends_of, settle_run
from dsmany.shared_search import Coordinator, Place, StudyOf
from dsmany.turn_record import SharedState, TurnGuard, UnlikeError
from dsresults.store import Store
from dsresults.store.documents import change_document, get_document
from dsresults.store.fleet_records import LEASE, add_machine, put_machine
from dssearch.question import Measure
from dssearch.search_record import question_of

TIDY_S = 1.0
LOOK_S = 5.0  # for what no job tells
AGAIN_S = 3.0  # after the database went away
LEAVING_S = 60.0


@dataclass(frozen=True, kw_only=True)
class _OpenLab:
    """A lab of this machine, and whose it is."""

    run_id: str
    name: str
    place: AbstractContextManager[Laboratory]
    lab: Laboratory


class FleetWorker:
    """Does the jobs of one machine, one turn at a time."""

    def __init__(
        self,
        *,
        machine: FleetMachine,
        engine: Engine,
        store: Store,
        study_of: StudyOf,
        observer: Observer,
        tell: Callable[[str], None],
    ) -> None:
        self._machine, self.engine, self._store = machine, engine, store
        self._study_of, self.observer, self._tell = study_of, observer, tell
        self._jobs = JobQueue.of(store)
        self._plans = Coordinator(store=store, jobs=self._jobs, study_of=study_of)
        self._at_work = threading.Lock()
        self._lab: _OpenLab | None = None
        self._unsettled = True  # what an earlier process of this machine began
        self._forgotten: set[str] = set()
        store.database.tell = tell

    def serve(self) -> None:
        """Be this machine until interrupted, or told to end by ``Lease.check``."""
        machine, database = self._machine, self._store.database
        title = f"machine {machine.name}"
        with database.writing() as connection:  # a sign of life is of a machine that is there
            add_machine(connection, machine)
        with leased(self._store, f"{LEASE}{machine.id}", title, every_s=BEAT_S) as lease:
            with database.writing() as connection:
                put_machine(connection, machine)
            stopped = threading.Event()
            tidier = threading.Thread(
                target=self._tidy, args=(stopped, lease), name="tidy", daemon=True
            )
            tidier.start()
            try:
                while True:
                    lease.check()
                    try:
                        self._jobs.serve(self, machine.id, lease.check)
                    except UpgradedError:
                        raise
                    except StoreError as error:
                        self._tell(f"{error.message}; asked again in {AGAIN_S:.0f} s")
                    self._unsettled = True
                    time.sleep(AGAIN_S)
            finally:
                stopped.set()
                tidier.join()
                self._leave()

    def advance(self, run_id: str) -> None:
        """Plan for a run: a job."""
        self._planned(run_id)

    def reap(self) -> None:
        """Plan for all runs that wait for it, as what was to ask may have died: a job."""
        for run_id in self._plans.due():
            self._planned(run_id)

    def _planned(self, run_id: str) -> None:
        """Plan; what this machine cannot read, such as a repository, another one may."""
        try:
            self._plans.advance(run_id)
        except StoreError as error:
            if not isinstance(error, UnreadableError):
                raise
            self._tell(f"run {run_id}: {error.message}")
        except Exception as error:  # noqa: BLE001 - a defect in one run must not stop the others
            self._tell(f"run {run_id}: {_told(error)}")

    def prepare(self, run_id: str) -> None:
        """Be the first to prepare what a run asks next, a job; the others must find the same."""
        with self._at_work:
            run = self._running(run_id)
            if run is None or not run.unprepared or run.preparing != self._machine.id:
                return
            with self._left_out_of(run):
                prepared = self._prepared(run)
                with self._store.database.writing() as connection:
                    now = get_document(connection, SharedRun, run_id, lock=True)
                    first = now is not None and now.unprepared and now.prepared == run.prepared
                    if now is not None and first:
                        changes = {"prepared": prepared, "unprepared": False}
                        change_document(connection, now.model_copy(update=changes))
                    self._jobs.advance(connection, run_id)
                if not first:
                    self._close_lab()  # its rows may hold other packages than the first one's

    def _prepared(self, run: SharedRun) -> Prepared:
        """Return what was prepared before, with what this machine prepares now."""
        study, before = self._study_of(run), run.prepared
        opener = _Opener(worker=self, run=run)
        answers = KnownAnswers(campaigns=campaigns_of(self._store, run))
        looks = study.prepare(answers, self._store, prepared=before, opener=opener)
        if before is None:
            before = Prepared(class_name=self._machine.class_name, lock=study.lock)
        return before.model_copy(
            update={"labs": before.labs | opener.labs, "looks": before.looks | looks}
        )

    def profile(self, run_id: str) -> None:
        """Profile both sides of what a run found, a job that ends it; no profile changes that."""
        with self._at_work:
            run = self._running(run_id)
            if run is None or not run.answered or run.profiling != self._machine.id:
                return
            with self._left_out_of(run):
                why = self._unprofiled(run)
                with self._store.database.writing() as connection:
                    current = get_document(connection, SharedRun, run_id, lock=True)
                    if current is not None and current.state is RunState.RUNNING:
                        changes = {"state": RunState.DONE, "unprofiled": why}
                        change_document(connection, current.model_copy(update=changes))

    def _unprofiled(self, run: SharedRun) -> str:
        """Take the profiles; why those that are missing are."""
        assert run.prepared is not None  # noqa: S101 - it has its answers
        known_answers = KnownAnswers(campaigns=campaigns_of(self._store, run))
        lab = self._lab_for(run, next(iter(run.prepared.labs)), known_answers)
        pairs = self._study_of(run).profile(known_answers, lab, self._store, self.observer)
        return "; ".join(dict.fromkeys(why for pair in pairs for why in pair.notes))

    def take(self, run_id: str, turn_id: str) -> None:
        """Take a turn, a job; do nothing where it is not, or no longer, this machine's."""
        with self._at_work:
            run = self._running(run_id)
            turn = self._store.turn(turn_id)
            if run is None or run.prepared is None or turn is None:
                return
            if turn.state is not TurnState.PLANNED or turn.machine != self._machine.id:
                return
            with self._left_out_of(run):
                self._taken(run, turn)

    def _taken(self, run: SharedRun, turn: Turn) -> None:
        store = self._store
        campaign = store.campaign(turn.campaign_id)
        assert campaign is not None  # noqa: S101 - stored before its first turn
        samples = store.samples(campaign_id=campaign.id)
        if any((sample.turn, sample.attempt) == (turn.number, turn.attempt) for sample in samples):
            self._unsettled = True  # half of it was taken when the job came before
            return
        known_answers = KnownAnswers(campaigns=campaigns_of(store, run))
        lab = self._lab_for(run, campaign.lab, known_answers)
        with suppress(UnansweredError):  # as far as it is known
            self._study_of(run).introduce(turn.candidates, known_answers, store)
        record = SharedState(
            campaign_id=campaign.id,
            store=store,
            lease=TurnGuard(store=store, run_id=run.id, turn_id=turn.id),
            samples=samples,
            by_id={stored_turn.id: stored_turn for stored_turn in store.turns(campaign.id)},
            jobs=self._jobs,
            run_id=run.id,
            lab=lab,
            machine=self._machine,
        )
        step = Measure(
            turn=turn.number,
            attempt=turn.attempt,
            candidates=turn.candidates,
            why=", ".join(turn.candidates),
            remaining=run.remaining,
        )
        self.observer.step(question_of(campaign), step)
        assert run.prepared is not None  # noqa: S101 - asked before
        ends = ends_of(campaign, run.prepared)
        TurnTaker(lab=lab, record=record, listener=self.observer, ends=ends, needs_all=False).take(
            turn
        )

    def _running(self, run_id: str) -> SharedRun | None:
        run = self._store.get(SharedRun, run_id)
        return run if run is not None and run.state is RunState.RUNNING else None

    def _lab_for(self, run: SharedRun, name: str, answers: LabAnswers) -> Laboratory:
        """Return this machine's lab of that name, which was prepared before."""
        opener = _Opener(worker=self, run=run)
        assert run.prepared is not None  # noqa: S101 - asked before
        lab = self._study_of(run).lab
        place = partial(lab, name, answers, self._store, prepared=run.prepared, opener=opener)
        return opener.open(name, place)

    def opened_lab(self, run_id: str, name: str, place: Place) -> Laboratory:
        """Return the lab that is open, if it is that one; any other is closed before."""
        if self._lab is not None and (self._lab.run_id, self._lab.name) == (run_id, name):
            return self._lab.lab
        self._close_lab()
        opened = place()
        self._lab = _OpenLab(run_id=run_id, name=name, place=opened, lab=opened.__enter__())
        return self._lab.lab

    def _close_lab(self) -> None:
        if self._lab is not None:
            place, self._lab = self._lab.place, None
            place.__exit__(None, None, None)

    def found_in(self, lab: Laboratory) -> PreparedLab:
        return PreparedLab(
            procedure=lab.setup.procedure,
            paired=lab.paired,
            identities=dict(lab.identities),
            unmeasurable={
                name: with_log_on(why, self._machine.name) for name, why in lab.unmeasurable.items()
            },
        )

    def refuse_other(self, prepared: Prepared, first: PreparedLab, mine: PreparedLab) -> None:
        """Raise UnlikeError where this machine's candidates are not those of the first."""
        differing = [
            name
            for name, of_first, of_mine in (
                ("class of machine", prepared.class_name, self._machine.class_name),
                ("way to measure", first.procedure, mine.procedure),
                ("candidates", *_both(first, mine)),
            )
            if of_first != of_mine
        ]
        if differing:
            raise UnlikeError(
                f"{self._machine.name} differs from the machine that prepared the run first: "
                + ", ".join(differing),
                hint="the others go on without it",
            )

    @contextmanager
    def _left_out_of(self, run: SharedRun) -> Iterator[None]:
        """End the run for what is its fault, and this machine's part of it for all else."""
        try:
            yield
        except (KeyboardInterrupt, StoppedError):
            return
        except BusyError as error:
            self._tell(error.message)
        except UnreadableError as error:
            self._end_part(run, str(error), fault_of_run=False)
        except StoreError:
            self._unsettled = True
            raise
        except (SystematicError, MatrixError, UsageError) as error:
            self._end_part(run, str(error), fault_of_run=True)
        except Exception as error:  # noqa: BLE001 - a defect here must not stop other machines
            self._end_part(run, _told(error), fault_of_run=False)

    def _end_part(self, run: SharedRun, why: str, *, fault_of_run: bool) -> None:
        self._tell(why)
        why = with_log_on(why, self._machine.name)
        fleet = fleet_of(self._store)
        with self._store.database.writing() as connection:
            now = get_document(connection, SharedRun, run.id, lock=True)
            if now is None or now.state is not RunState.RUNNING:
                return
            left_out = {**now.left_out, self._machine.id: f"{self._machine.name}: {why}"}
            changed = now.model_copy(update={"left_out": left_out})
            if fault_of_run or not fit_for(changed, fleet):
                reasons = why if fault_of_run else "; ".join(left_out.values())
                changed = changed.model_copy(update=_end_of(now, reasons))
            change_document(connection, changed)
            self._jobs.advance(connection, run.id)
        if changed.state is RunState.FAILED:
            settle_run(self._store, changed)

    def _tidy(self, ended: threading.Event, lease: Lease) -> None:
        """End, between turns, what was left begun, and close the lab of a run that has ended."""
        looked_s = time.monotonic()
        while not ended.wait(TIDY_S):
            try:
                check_request()
                lease.check()
            except (KeyboardInterrupt, BusyError, UpgradedError):
                stop_all()
                return
            if not self._at_work.acquire(blocking=False):
                continue
            try:
                if time.monotonic() - looked_s > LOOK_S:
                    looked_s = time.monotonic()
                    self._look()
                if self._unsettled:
                    self._settle()
                if self._lab is not None and self._running(self._lab.run_id) is None:
                    self._close_lab()
            except UpgradedError as error:
                lease.upgraded.append(error)
            except DsbisectError as error:
                self._tell(error.message)
            finally:
                self._at_work.release()

    def _look(self) -> None:
        """Find what this machine is to do and no job tells it, twice: the job was lost.

        As where a connection is cut while the job is fetched or begun.
        """
        runs = self._store.find(SharedRun, state=RunState.RUNNING)
        own_ids = {run.id for run in runs if run.alone == self._machine.id}
        turns = planned_turns(self._store, runs).values()
        own_ids |= {
            turn.id for run_turns in turns for turn in run_turns if turn.machine == self._machine.id
        }
        with self._store.database.looking() as connection:
            own_ids -= self._jobs.waiting(connection, self._machine.id)
        self._unsettled |= bool(own_ids & self._forgotten)
        self._forgotten = own_ids

    def _settle(self) -> None:
        """End the turns that this machine began and will not go on with."""
        runs = self._store.find(SharedRun, state=RunState.RUNNING)
        for run in runs:
            try:
                for campaign in campaigns_of(self._store, run):
                    self._store.settle_turns(campaign.id, {self._machine.id})
            except UnreadableError as error:
                self._tell(f"run {run.id}: {error.message}")
                continue
            with self._store.database.writing() as connection:
                now = get_document(connection, SharedRun, run.id, lock=True)
                if now is not None and now.alone == self._machine.id:
                    change_document(connection, now.given_to(""))
                self._jobs.advance(connection, run.id)
        self._unsettled = False

    def _leave(self) -> None:
        """Remove containers, and let others have what this machine had."""
        stop_all()
        if self._at_work.acquire(timeout=LEAVING_S):
            self._close_lab()
            with suppress(DsbisectError):  # others notice it by its silence
                self._settle()


@dataclass(frozen=True, kw_only=True)
class _Opener:
    """Opens a run's labs on a worker's machine."""

    worker: FleetWorker
    run: SharedRun
    labs: dict[str, PreparedLab] = field(default_factory=dict)  # that no machine had before

    @property
    def engine(self) -> Engine:
        return self.worker.engine

    @property
    def observer(self) -> Observer:
        return self.worker.observer

    def open(self, name: str, place: Place) -> Laboratory:
        """UnlikeError where it is not as that of the machine that had it first."""
        lab, prepared = self.worker.opened_lab(self.run.id, name, place), self.run.prepared
        if prepared is not None and name in prepared.labs:
            self.worker.refuse_other(prepared, prepared.labs[name], self.worker.found_in(lab))
        else:
            self.labs[name] = self.worker.found_in(lab)
        return lab


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, DsbisectError) else repr(error)


def _end_of(run: SharedRun, why: str) -> dict[str, object]:
    """Return how a run ends that no machine can go on with: one that has its answers keeps them."""
    if run.answered:
        return {"state": RunState.DONE, "unprofiled": why}
    return {"state": RunState.FAILED, "why": why}


def _both(first: PreparedLab, mine: PreparedLab) -> tuple[object, object]:
    """What each says of the candidates that the first one prepared: more may have come since."""
    own_identities = {name: mine.identities.get(name) for name in first.identities}
    failed = [set(prepared.unmeasurable) for prepared in (first, mine)]
    return (first.identities, failed[0]), (own_identities, failed[1])
