"""What a shared run has asked: answers that the store has, and turns for questions that are open.

Questions that do not need each other's answers are asked together: each gets a machine before
one gets two, so that a proof's comparisons are built and measured at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Self, TypeVar

from sqlalchemy import Connection

from dsharness.content_key import content_key
from dsharness.errors import InconclusiveError
from dsharness.measure.metrics import find_metric
from dsharness.model import (
    Campaign,
    CampaignKind,
    Prepared,
    PreparedLab,
    Sample,
    SharedRun,
    Turn,
    TurnState,
    Workload,
)
from dslab.campaign_loop import Answers, turn_of
from dslab.known_answers import UnansweredError, asked_before
from dsmany.fleet import FleetMember, campaign_id_of, fit_for, lost_to, strayed
from dsmany.job_queue import JobQueue
from dsmany.run_noise import RunNoise, noisier, run_noise
from dsresults.store import Store
from dsresults.store.records import give_up_turns, put
from dssearch.planner import advance, history_of
from dssearch.question import Answer, Enough, History, Measure, Question, Search
from dssearch.search_record import choice_of, inputs_of, search_of

AT_ONCE = 8  # campaigns that are looked for with one question

T = TypeVar("T")
# Machines that may have a turn of a run, if these have one.
Free = Callable[[SharedRun, set[str]], list[str]]


def campaigns_of(store: Store, run: SharedRun) -> list[Campaign]:
    """Return those that a run has asked so far, in order."""
    campaigns: list[Campaign] = []
    while True:
        ids = [campaign_id_of(run, len(campaigns) + number) for number in range(AT_ONCE)]
        stored_campaigns = {campaign.id: campaign for campaign in store.get_all(Campaign, ids)}
        campaigns += (
            stored_campaigns[campaign_id] for campaign_id in ids if campaign_id in stored_campaigns
        )
        if len(stored_campaigns) < AT_ONCE:
            return campaigns


def settle_run(store: Store, run: SharedRun) -> None:
    """End what machines have of a run that has ended: what they still measure does not count."""
    for campaign in campaigns_of(store, run):
        store.settle_turns(campaign.id, None)


def asked_together(asks: Sequence[Callable[[], T]]) -> tuple[T, ...]:
    """``Together`` of several machines: all are asked before one without an answer ends it."""
    answers: list[T] = []
    for ask in asks:
        try:
            answers.append(ask())
        except UnansweredError:
            continue
    if len(answers) < len(asks):
        raise UnansweredError
    return tuple(answers)


@dataclass(kw_only=True)
class _OpenQuestion:
    """One that has no answer yet, with the turns that it has so far."""

    campaign: Campaign
    question: Question
    workload: Workload
    search: Search
    history: History
    turns: list[Turn]
    step: Measure | Answer | Enough | None = None  # the next one, where it was looked for
    remaining: int | None = None  # samples that are still expected

    @property
    def under_way(self) -> int:
        return sum(turn.state is TurnState.PLANNED for turn in self.turns)

    @property
    def machines(self) -> set[str]:
        return {turn.machine for turn in self.turns}

    def look(self) -> Measure | Answer | Enough:
        """Return what it wants next."""
        self.step = advance(self.question, self.search, self.history, self.turns)
        if isinstance(self.step, Measure):
            self.remaining = self.step.remaining
        return self.step


@dataclass(kw_only=True)
class PlannedAnswers:
    """``Answers`` of a run: what has none yet is kept, to be given turns when all were asked."""

    store: Store
    jobs: JobQueue
    connection: Connection
    run: SharedRun
    prepared: Prepared
    campaigns: list[Campaign]  # of the run so far
    turns: dict[str, list[Turn]]  # of those without an answer
    samples: dict[str, list[Sample]]
    free: list[str]  # machines that may have a turn, the first choice first
    busy: set[str]
    open: list[_OpenQuestion] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        store: Store,
        jobs: JobQueue,
        connection: Connection,
        run: SharedRun,
        fleet: Sequence[FleetMember],
        free: Free,
    ) -> Self:
        """Return what the store has of it; turns of machines that are lost are given up first."""
        prepared = run.prepared
        assert prepared is not None  # noqa: S101 - asked before
        campaigns = campaigns_of(store, run)
        open_ids = [campaign.id for campaign in campaigns if campaign.boundary is None]
        turns = {campaign_id: store.turns(campaign_id) for campaign_id in open_ids}
        samples = {campaign_id: store.samples(campaign_id=campaign_id) for campaign_id in open_ids}
        if reasons := _strayed_turns(turns, samples, prepared.class_name):
            run = _without(store, run, fleet, reasons)
            turns = {campaign_id: store.turns(campaign_id) for campaign_id in open_ids}
            samples = {
                campaign_id: store.samples(campaign_id=campaign_id) for campaign_id in open_ids
            }
        calm, noisy = _without_noisy(
            run, fleet, [campaign for campaign in campaigns if campaign.id in turns], turns, samples
        )
        if noisy:
            run = calm
            with store.database.writing() as own:  # a machine's role may not: its samples count
                give_up_turns(own, noisy)
            turns = {campaign_id: store.turns(campaign_id) for campaign_id in open_ids}
        busy = _with_turns(turns)
        if lost := lost_to(run, fleet, busy):
            for campaign_id in turns:
                store.settle_turns(campaign_id, lost)
                turns[campaign_id] = store.turns(campaign_id)
            busy -= lost
        return cls(
            store=store,
            jobs=jobs,
            connection=connection,
            run=run,
            prepared=prepared,
            campaigns=campaigns,
            turns=turns,
            samples=samples,
            free=free(run, busy),
            busy=busy,
        )

    @property
    def remaining(self) -> int:
        """Samples that are still expected of all that is open."""
        remainders = [question.remaining for question in self.open]
        return (
            sum(remainder for remainder in remainders if remainder)
            if None not in remainders
            else self.run.remaining
        )

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        return self._answered("", question, workload, search, kind)

    def within(self, lab: str) -> Answers:
        return partial(self._answered, lab)

    def _answered(
        self, lab: str, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        campaign = self._campaign(lab, question, workload, search, kind)
        if campaign.boundary is None:
            search = search_of(campaign) if search.looks else search
            open_question = self._opened(campaign, question, workload, search)
            step = open_question.look() if self.free or not self.busy else None
            if not isinstance(step, Answer):
                self.open.append(open_question)
                raise UnansweredError
            boundary, finished_at = step.boundary, _now()
            self.store.finish_campaign(campaign.id, boundary, finished_at)
            campaign = campaign.model_copy(
                update={"boundary": boundary, "finished_at": finished_at}
            )
            self.campaigns = [
                campaign if stored_campaign.id == campaign.id else stored_campaign
                for stored_campaign in self.campaigns
            ]
        return campaign

    def _campaign(
        self, lab: str, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        """Return the stored campaign of a question, which is stored now if it is new."""
        if earlier := asked_before(self.campaigns, question, kind):
            return earlier
        prepared_lab = self.prepared.labs[lab]
        campaign = Campaign(
            id=campaign_id_of(self.run, len(self.campaigns)),
            kind=kind,
            line=question.line,
            series_id=question.series_id,
            workload_id=question.workload_id,
            settings_id=question.settings_id,
            metric=question.metric,
            started_at=_now(),
            fingerprint=_fingerprint(
                question, workload, search, self.prepared.class_name, prepared_lab
            ),
            unmeasured=prepared_lab.unmeasurable,
            search=choice_of(search),
            lab=lab,
        )
        self.store.put(campaign)
        self.campaigns.append(campaign)
        return campaign

    def _opened(
        self, campaign: Campaign, question: Question, workload: Workload, search: Search
    ) -> _OpenQuestion:
        """Return a question with what was measured for it."""
        turns = self.turns.setdefault(campaign.id, [])
        samples = self.samples.get(campaign.id, [])
        unmeasurable = self.prepared.labs[campaign.lab].unmeasurable
        history = history_of(samples, turns, unmeasurable, ends_of(campaign, self.prepared))
        if not search.looks:
            _refuse_missing(question, history)
        return _OpenQuestion(
            campaign=campaign,
            question=question,
            workload=workload,
            search=search,
            history=history,
            turns=turns,
        )

    def give_turns(self) -> list[str]:
        """Give free machines turns, first of questions that have the fewest; the machines."""
        machines: list[str] = []
        waiting = list(self.open)
        while self.free and waiting:
            open_question = min(waiting, key=lambda question: question.under_way)
            step = open_question.step or open_question.look()
            if not isinstance(step, Measure):
                waiting.remove(open_question)
                continue
            machine = self._choice(open_question)
            self.free.remove(machine)
            turn = turn_of(
                open_question.campaign.id,
                step,
                workload=open_question.workload,
                way=self.prepared.labs[open_question.campaign.lab].procedure.way,
                machine=machine,
            )
            put(self.connection, turn)
            self.jobs.take(self.connection, self.run.id, turn)
            open_question.turns.append(turn)
            open_question.step = None
            machines.append(machine)
        return machines

    def _choice(self, question: _OpenQuestion) -> str:
        """The machine that has its builds already; else one that has none of another question."""
        busy_elsewhere = {
            name
            for other_question in self.open
            if other_question is not question
            for name in other_question.machines
        }
        return min(
            self.free,
            key=lambda machine: (machine not in question.machines, machine in busy_elsewhere),
        )


def _with_turns(turns: Mapping[str, Sequence[Turn]]) -> set[str]:
    """Return the machines that have a turn to take."""
    planned = (turn for campaign_turns in turns.values() for turn in campaign_turns)
    return {turn.machine for turn in planned if turn.state is TurnState.PLANNED}


def _strayed_turns(
    turns: Mapping[str, Sequence[Turn]], samples: Mapping[str, Sequence[Sample]], class_name: str
) -> dict[str, tuple[Turn, str]]:
    """Return turns whose samples are of another machine or class, by id, with the reason.

    Each machine looks at its own samples; this is for one whose program does not.
    """
    strayed_turns: dict[str, tuple[Turn, str]] = {}
    for campaign_id, campaign_turns in turns.items():
        turns_by_number = {(turn.number, turn.attempt): turn for turn in campaign_turns}
        for sample in samples[campaign_id]:
            turn = turns_by_number.get((sample.turn, sample.attempt))
            if turn is not None and (why := strayed(sample, turn.machine, class_name)):
                strayed_turns[turn.id] = turn, why
    return strayed_turns


def _without(
    store: Store,
    run: SharedRun,
    fleet: Sequence[FleetMember],
    reasons: Mapping[str, tuple[Turn, str]],
) -> SharedRun:
    """Give these turns up, and leave their machines out of the run."""
    left_out = dict(run.left_out)
    names = {member.machine.id: member.machine.name for member in fleet}
    for turn, why in reasons.values():
        left_out.setdefault(turn.machine, f"{names.get(turn.machine, turn.machine)}: {why}")
    with store.database.writing() as connection:
        given_up = give_up_turns(connection, reasons)
    run = run.model_copy(update={"left_out": left_out})
    if given_up < len(reasons) or not fit_for(run, fleet):
        raise InconclusiveError("; ".join(left_out.values()))
    return run


def _without_noisy(
    run: SharedRun,
    fleet: Sequence[FleetMember],
    campaigns: Iterable[Campaign],
    turns: Mapping[str, Sequence[Turn]],
    samples: Mapping[str, Sequence[Sample]],
) -> tuple[SharedRun, list[str]]:
    """Leave machines out whose runs vary too much, if others stay; the ids of their turns."""
    noises: dict[str, RunNoise] = {}
    for campaign in campaigns:
        metric = find_metric(campaign.metric)
        campaign_noise = run_noise(turns[campaign.id], samples[campaign.id], metric)
        for machine, noise in campaign_noise.items():
            noises[machine] = noises.get(machine, RunNoise()) + noise
    names = {member.machine.id: member.machine.name for member in fleet}
    why = {
        machine: f"{names.get(machine, machine)}: {reason}"
        for machine, reason in noisier(noises, names).items()
        if machine not in run.left_out
    }
    calm = run.model_copy(update={"left_out": {**run.left_out, **why}})
    if not why or not fit_for(calm, fleet):
        return run, []
    return calm, [
        turn.id
        for campaign_turns in turns.values()
        for turn in campaign_turns
        if turn.machine in why
    ]


def ends_of(campaign: Campaign, prepared: Prepared) -> Mapping[str, str]:
    """Return what could not be measured before a search over commits began: as on one machine."""
    return prepared.labs[campaign.lab].unmeasurable if campaign.kind == "commits" else {}


def _refuse_missing(question: Question, history: History) -> None:
    """Raise InconclusiveError where nothing can be said without a candidate."""
    for name, why in history.unmeasurable.items():
        if name in question.line:
            raise InconclusiveError(f"{name} cannot be measured: {why}")


def _fingerprint(
    question: Question, workload: Workload, search: Search, class_name: str, lab: PreparedLab
) -> str:
    """Return that of a campaign of one machine; the class of machines stands for the machine."""
    inputs: list[object] = [
        question.line,
        question.metric,
        workload.model_dump(mode="json"),
        {candidate: lab.identities.get(candidate) for candidate in question.line},
        class_name,
        lab.procedure.model_dump(mode="json"),
        *inputs_of(search),
    ]
    return content_key(inputs)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
