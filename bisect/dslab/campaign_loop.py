"""A campaign in the lab: measure what is asked for, store at once, go on where it was stopped.

A loop takes turns and stores what comes of them. Its lease on the search is held by one process at
a time, and renewed while that measures and builds.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol, Self, TypeVar

from dsharness.content_key import content_key
from dsharness.errors import BusyError, CandidateError, StoreError, UpgradedError
from dsharness.model import (
    Boundary,
    Campaign,
    CampaignKind,
    Sample,
    Setup,
    Starts,
    Turn,
    TurnState,
    WayName,
    Workload,
)
from dslab.observer import Listener
from dsresults.store import Store
from dsresults.store.leases import STALE_S, Holder, this_process
from dssearch.planner import advance, history_of, refuse_endless_disturbance
from dssearch.question import Answer, Enough, Measure, Question, Search
from dssearch.repeated_failure import failures_of
from dssearch.search_record import choice_of, inputs_of, search_of

BEAT_S = 20.0
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Lease:
    """One question of this process's own."""

    store: Store
    key: str
    what: str
    me: Holder = field(default_factory=this_process)
    lost: threading.Event = field(default_factory=threading.Event)
    upgraded: list[UpgradedError] = field(default_factory=list)

    def check(self) -> None:
        """BusyError when another process has taken the search over; UpgradedError: the database."""
        if self.upgraded:
            raise self.upgraded[0]
        if self.lost.is_set():
            raise BusyError(
                f"{self.what}: another process has taken over, since this one gave no sign "
                "of life for too long",
                hint="let it finish; it uses every stored sample",
            )

    def keep(self, ended: threading.Event, every_s: float) -> None:
        """Renew the lease again and again, whatever the main thread waits for."""
        while not ended.wait(every_s):
            try:
                if self.store.renew_lease(self.key, self.me):
                    continue
                self.lost.set()
            except UpgradedError as error:
                self.upgraded.append(error)
            except StoreError:  # the next one may get through
                continue
            return


@contextmanager
def leased(store: Store, key: str, what: str, *, every_s: float = BEAT_S) -> Iterator[Lease]:
    """Hold the lease inside the block, or BusyError with who has it."""
    lease = Lease(store=store, key=key, what=what)
    holder = store.take_lease(key, lease.me)
    if holder is not None:
        raise BusyError(
            f"{what}: the same search is already running: {holder}",
            hint="wait for it or end it; the same command then continues from its samples. "
            "A process "
            f"that cannot be checked counts as dead after {STALE_S / 60:.0f} minutes "
            "without a sign of life",
        )
    ended = threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(ended, every_s), name="lease", daemon=True)
    keeper.start()
    try:
        yield lease
    finally:
        ended.set()
        keeper.join(timeout=5.0)
        with contextlib.suppress(StoreError):  # it would hide the real error; leases expire
            store.release_lease(key, lease.me)


class SampleSource(Protocol):
    """Where samples come from."""

    @property
    def identities(self) -> Mapping[str, str]: ...

    @property
    def unmeasurable(self) -> Mapping[str, str]: ...

    @property
    def setup(self) -> Setup: ...

    def prepare_more(self, candidates: Sequence[str], starts: Starts = "kept") -> None:
        """Build and fill at the same time what a turn needs; errors come from ``ready``."""
        ...

    def ready(self, candidate: str) -> None:
        """Its server runs; CandidateError when it cannot."""
        ...

    def take(self, turn: Turn) -> Iterable[Sample]:
        """One run of each of its candidates; they are ready."""
        ...


class Guard(Protocol):
    """Whether what is measured may still be stored."""

    def check(self) -> None:
        """BusyError when it may not."""
        ...


@dataclass(frozen=True, kw_only=True)
class CampaignState:
    """What the store holds of a campaign; whatever is added is stored first."""

    campaign_id: str
    store: Store
    lease: Guard
    samples: list[Sample]
    by_id: dict[str, Turn]

    @classmethod
    def of(cls, campaign: Campaign, store: Store, lease: Guard) -> Self:
        """Read it as it is."""
        return cls(
            campaign_id=campaign.id,
            store=store,
            lease=lease,
            samples=store.samples(campaign_id=campaign.id),
            by_id={turn.id: turn for turn in store.turns(campaign.id)},
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(self.by_id.values())

    def put(self, turn: Turn) -> None:
        self.store.put(turn)
        self.by_id[turn.id] = turn

    def add(self, sample: Sample) -> None:
        self.lease.check()
        self.store.put(sample)
        self.samples.append(sample)


@dataclass(frozen=True, kw_only=True)
class TurnTaker:
    """Takes turns in the lab; what comes of them goes to the record at once."""

    lab: SampleSource
    record: CampaignState
    listener: Listener
    ends: Mapping[str, str]  # that could not be measured before the search began
    needs_all: bool  # nothing can be said without each candidate

    def take(self, turn: Turn) -> None:
        """Nothing where it was taken before: it may be asked for more than once."""
        stored_turn = self.record.store.turn(turn.id)
        if stored_turn is not None and stored_turn.state is not TurnState.PLANNED:
            return
        self.record.put(turn)
        self.lab.prepare_more(turn.candidates, turn.starts)
        for candidate in turn.candidates:
            try:
                self.lab.ready(candidate)
            except CandidateError as error:
                self._refuse(turn, candidate, error)
                return
        for sample in self.lab.take(turn):
            self.record.add(sample)
            self.listener.sampled(sample)
        self.record.put(turn.ended(TurnState.DONE))
        refuse_endless_disturbance(self.record.samples)

    def _refuse(self, turn: Turn, candidate: str, error: CandidateError) -> None:
        """SystematicError when it is no longer a matter of this candidate."""
        if self.needs_all:
            raise error
        self.listener.unmeasurable(candidate, str(error))
        row, _ = failures_of(self.record.turns, self.ends)
        self.record.put(turn.ended(TurnState.FAILED, {candidate: str(error)}))
        row.failed(candidate, error)


class Answers(Protocol):
    """Answers questions, one after the other; how and where they are measured is its matter."""

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        """The campaign with its answer."""
        ...


class LabAnswers(Protocol):
    """Answers questions of several labs."""

    def within(self, lab: str) -> Answers:
        """Those of the lab of that name."""
        ...


class Together(Protocol):
    """Asks what does not need the others' answers: they may be measured at the same time."""

    def __call__(self, asks: Sequence[Callable[[], T]], /) -> tuple[T, ...]:
        """What each says, in their order."""
        ...


def asked_in_turn(asks: Sequence[Callable[[], T]]) -> tuple[T, ...]:
    """``Together`` of one machine, which measures one thing at a time."""
    return tuple(ask() for ask in asks)


@dataclass(frozen=True, kw_only=True)
class CampaignOrder:
    """A question with its search, the lab that samples come from, and the store that keeps them."""

    question: Question
    workload: Workload
    search: Search
    lab: SampleSource
    store: Store
    kind: CampaignKind = "rows"

    @property
    def fingerprint(self) -> str:
        """A key of everything that must be the same for old samples to count.

        What was ready or suspected before may have changed when it continues.
        """
        identities = {
            candidate: self.lab.identities.get(candidate) for candidate in self.question.line
        }
        inputs: list[object] = [
            self.question.line,
            self.question.metric,
            self.workload.model_dump(mode="json"),
            identities,
            self.lab.setup.model_dump(mode="json"),
            *inputs_of(self.search),
        ]
        return content_key(inputs)

    @property
    def unfinished(self) -> Campaign | None:
        """The interrupted campaign of this question, in the same environment."""
        own_campaigns = [run for run in self._campaigns(finished=False) if run.kind == self.kind]
        return own_campaigns[-1] if own_campaigns else None

    @property
    def answers(self) -> list[Campaign]:
        """All answers to this from the same environment, the newest last."""
        answered = self._campaigns(finished=True)
        return sorted(answered, key=lambda campaign: campaign.finished_at or "")

    def _campaigns(self, *, finished: bool) -> list[Campaign]:
        """Those of this question in the same environment, in time order."""
        asked_ids = (self.question.series_id, self.question.workload_id, self.question.settings_id)
        alike = self.store.campaigns(fingerprint=self.fingerprint, finished=finished)
        return [
            campaign
            for campaign in alike
            if (campaign.series_id, campaign.workload_id, campaign.settings_id) == asked_ids
        ]

    def answered_before(self, moment: str) -> Campaign | None:
        """The newest answer to this that existed at that moment."""
        answers = reversed(self.answers)
        return next((answer for answer in answers if (answer.finished_at or "") <= moment), None)

    def run(self, listener: Listener) -> Campaign:
        """Go on until the answer, or until it is enough; an interrupted campaign continues.

        BusyError when another process has the same question in the same environment.
        """
        question = self.question
        title = f"{question.workload_id} on {question.line[0]} to {question.line[-1]}"
        key = content_key(
            [
                self.kind,
                question.series_id,
                question.workload_id,
                question.settings_id,
                self.fingerprint,
            ]
        )
        with leased(self.store, key, title) as lease:
            return _run(self, listener, lease)


def _run(order: CampaignOrder, listener: Listener, lease: Lease) -> Campaign:
    campaign = order.unfinished or begun(order)
    order.store.settle_turns(campaign.id, {order.lab.setup.machine.id})  # an earlier process's
    record = CampaignState.of(campaign, order.store, lease)
    search = order.search
    if record.samples or record.turns:
        listener.resumed(campaign, len(record.samples))
        if search.looks:
            search = search_of(campaign)  # with the same costs, so that a replay decides the same
    taker = TurnTaker(
        lab=order.lab,
        record=record,
        listener=listener,
        ends=dict(order.lab.unmeasurable) if order.kind == "commits" else {},
        needs_all=not search.looks,
    )
    boundary = _answered(order, search, taker)
    if boundary is None:  # a lab can always measure more, so this is enough
        return campaign
    finished_at = _now()
    lease.check()
    order.store.finish_campaign(campaign.id, boundary, finished_at)
    listener.answered(boundary)
    return campaign.model_copy(update={"boundary": boundary, "finished_at": finished_at})


def begun(order: CampaignOrder) -> Campaign:
    """A new campaign, stored before its first turn."""
    question = order.question
    campaign = Campaign(
        id=str(uuid.uuid4()),
        kind=order.kind,
        line=question.line,
        series_id=question.series_id,
        workload_id=question.workload_id,
        settings_id=question.settings_id,
        metric=question.metric,
        started_at=_now(),
        fingerprint=order.fingerprint,
        unmeasured=dict(order.lab.unmeasurable),
        search=choice_of(order.search),
    )
    order.store.put(campaign)
    return campaign


def _answered(order: CampaignOrder, search: Search, taker: TurnTaker) -> Boundary | None:
    """Plan a turn from what is stored, take it, store it, and plan again until the answer."""
    setup, unmeasurable = order.lab.setup, dict(order.lab.unmeasurable)
    record = taker.record
    while True:
        history = history_of(record.samples, record.turns, unmeasurable, taker.ends)
        step = advance(order.question, search, history, record.turns)
        if isinstance(step, Answer):
            return step.boundary
        if isinstance(step, Enough):
            return None
        taker.listener.step(order.question, step)
        way, machine = setup.procedure.way, setup.machine.id
        taker.take(
            turn_of(record.campaign_id, step, workload=order.workload, way=way, machine=machine)
        )


def turn_of(
    campaign_id: str, step: Measure, *, workload: Workload, way: WayName, machine: str
) -> Turn:
    """The turn that a machine is to take."""
    return Turn(
        campaign_id=campaign_id,
        number=step.turn,
        attempt=step.attempt,
        candidates=step.candidates,
        workload=workload,
        way=way,
        machine=machine,
        starts=step.starts,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
