"""A campaign in the lab: measure what is asked for, store at once, go on where it was stopped."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from dsharness.content_key import content_key
from dsharness.errors import CandidateError, InconclusiveError
from dsharness.model import Campaign, Sample, Setup, Turn, TurnState, Workload
from dslab.search_claim import Claim, claimed
from dslab.watcher import Listener
from dsresults.store import Store
from dssearch.question import History, Measure, Question, Search
from dssearch.repeated_failure import failures_of
from dssearch.search_loop import TurnEnd, run_search
from dssearch.search_record import choice_of, inputs_of, search_of

Kind = Literal["rows", "commits", "measure", "validate"]

MOST_DISTURBED = 20  # runs in a row


class SampleSource(Protocol):
    """Where samples come from."""

    @property
    def identities(self) -> Mapping[str, str]: ...

    @property
    def unmeasurable(self) -> Mapping[str, str]: ...

    @property
    def setup(self) -> Setup: ...

    def prepare_more(self, candidates: Sequence[str]) -> None:
        """Build and fill at the same time what a turn needs; errors come from ``ready``."""
        ...

    def ready(self, candidate: str) -> None:
        """Its server runs; CandidateError when it cannot."""
        ...

    def take(self, turn: Turn) -> Iterable[Sample]:
        """One run of each of its candidates; they are ready."""
        ...


def run_campaign(
    question: Question,
    workload: Workload,
    *,
    search: Search,
    lab: SampleSource,
    store: Store,
    listener: Listener,
    kind: Kind = "rows",
) -> Campaign:
    """Go on until the answer, or until it is enough; an interrupted campaign continues.

    BusyError when another process has the same question in the same environment.
    """
    fingerprint = _fingerprint(question, workload, search, lab)
    asked = [kind, question.series_id, question.workload_id, question.settings_id, fingerprint]
    what = f"{question.workload_id} on {question.line[0]} to {question.line[-1]}"
    with claimed(store, content_key(asked), what) as claim:
        return _run(question, workload, search, lab, store, listener, kind, claim)


def _run(
    question: Question,
    workload: Workload,
    search: Search,
    lab: SampleSource,
    store: Store,
    listener: Listener,
    kind: Kind,
    claim: Claim,
) -> Campaign:
    campaign, samples = _open_campaign(question, workload, search, lab, store, kind)
    turns = store.turns(campaign.id)
    if samples:
        listener.resumed(campaign, len(samples))
    if turns and search.looks:
        search = search_of(campaign)  # with the same costs, so that a replay decides the same
    ends = lab.unmeasurable if kind == "commits" else {}
    _, refused = failures_of(turns, ends)
    history = History.of_samples(samples, {**refused, **lab.unmeasurable})
    setup = lab.setup
    source = _Measured(
        question=question,
        plan=Turn(
            campaign_id=campaign.id,
            number=0,
            candidates=(),
            workload=workload,
            way=setup.procedure.way,
            machine=setup.machine.id,
        ),
        turns=turns,
        lab=lab,
        store=store,
        listener=listener,
        claim=claim,
        ends=ends,
        needs_all=not search.looks,
        latest=deque(samples, maxlen=MOST_DISTURBED),
    )
    end = run_search(question, search, source, history)
    if end.boundary is None:  # a lab can always measure more, so this is enough
        return campaign
    finished_at = _now()
    claim.check()
    store.finish_campaign(campaign.id, end.boundary, finished_at)
    listener.answered(end.boundary)
    return campaign.model_copy(update={"boundary": end.boundary, "finished_at": finished_at})


@dataclass(frozen=True, kw_only=True)
class _Measured:
    """A ``TurnSource``: the lab. What it takes is stored at once."""

    question: Question
    plan: Turn  # what all have in common
    turns: list[Turn]  # so far
    lab: SampleSource
    store: Store
    listener: Listener
    claim: Claim
    ends: Mapping[str, str]  # that could not be measured before it began
    needs_all: bool  # nothing can be said without each candidate
    latest: deque[Sample]

    def turn(self, step: Measure) -> TurnEnd:
        self.listener.step(self.question, step)
        turn = self._planned(step)
        self.store.put_turn(turn)
        self.lab.prepare_more(step.candidates)
        for candidate in step.candidates:
            try:
                self.lab.ready(candidate)
            except CandidateError as error:
                return self._refused(turn, candidate, error)
        taken = tuple(self._samples(turn))
        self._ended(turn.ended(TurnState.DONE))
        self._refuse_endless_disturbance()
        return TurnEnd(samples=taken)

    def _planned(self, step: Measure) -> Turn:
        return self.plan.model_copy(
            update={
                "number": step.turn,
                "attempt": 1 + sum(turn.number == step.turn for turn in self.turns),
                "candidates": step.candidates,
            }
        )

    def _ended(self, turn: Turn) -> None:
        self.store.put_turn(turn)
        self.turns.append(turn)

    def _refused(self, turn: Turn, candidate: str, error: CandidateError) -> TurnEnd:
        """SystematicError when it is no longer a matter of this candidate."""
        if self.needs_all:
            raise error
        refused = {candidate: str(error)}
        self.listener.unmeasurable(candidate, str(error))
        row, _ = failures_of(self.turns, self.ends)
        self._ended(turn.ended(TurnState.FAILED, refused))
        row.failed(candidate, error)
        return TurnEnd(unmeasurable=refused)

    def _samples(self, turn: Turn) -> Iterator[Sample]:
        for sample in self.lab.take(turn):
            self.claim.check()
            self.store.add_sample(sample)
            self.latest.append(sample)
            self.listener.sampled(sample)
            yield sample

    def _refuse_endless_disturbance(self) -> None:
        """Disturbed runs are repeated, but not without end."""
        latest = self.latest
        if len(latest) == MOST_DISTURBED and all(sample.disturbed for sample in latest):
            reasons = "; ".join(latest[-1].disturbed)
            raise InconclusiveError(
                f"the last {MOST_DISTURBED} runs were all disturbed: {reasons}",
                hint="stop what disturbs this machine, then give the same command: it continues "
                "from here",
            )


def unfinished(
    question: Question,
    workload: Workload,
    search: Search,
    lab: SampleSource,
    store: Store,
    kind: Kind = "rows",
) -> Campaign | None:
    """The interrupted campaign of this question, in the same environment."""
    return store.unfinished_campaign(
        kind=kind,
        series_id=question.series_id,
        workload_id=question.workload_id,
        settings_id=question.settings_id,
        fingerprint=_fingerprint(question, workload, search, lab),
    )


def answered_before(
    moment: str,
    question: Question,
    workload: Workload,
    search: Search,
    lab: SampleSource,
    store: Store,
) -> Campaign | None:
    """The newest answer to this that existed at that moment, from the same environment."""
    fingerprint = _fingerprint(question, workload, search, lab)
    finished = store.campaigns(
        series_id=question.series_id,
        workload_id=question.workload_id,
        settings_id=question.settings_id,
        finished=True,
    )
    fitting = [
        campaign
        for campaign in finished
        if campaign.fingerprint == fingerprint and (campaign.finished_at or "") <= moment
    ]
    return max(fitting, key=lambda campaign: campaign.finished_at or "", default=None)


def _open_campaign(
    question: Question,
    workload: Workload,
    search: Search,
    lab: SampleSource,
    store: Store,
    kind: Kind,
) -> tuple[Campaign, list[Sample]]:
    known = unfinished(question, workload, search, lab, store, kind)
    if known is not None:
        store.settle_turns(known.id)
        return known, store.samples(campaign_id=known.id)
    new = _campaign(question, kind, _fingerprint(question, workload, search, lab))
    campaign = new.model_copy(
        update={"unmeasured": dict(lab.unmeasurable), "search": choice_of(search)}
    )
    store.add_campaign(campaign)
    return campaign, []


def _campaign(question: Question, kind: Kind, fingerprint: str) -> Campaign:
    """A new one that begins now."""
    return Campaign(
        id=str(uuid.uuid4()),
        kind=kind,
        line=question.line,
        series_id=question.series_id,
        workload_id=question.workload_id,
        settings_id=question.settings_id,
        metric=question.metric,
        started_at=_now(),
        fingerprint=fingerprint,
    )


def _fingerprint(question: Question, workload: Workload, search: Search, lab: SampleSource) -> str:
    """Of everything that must be the same for old samples to count.

    What was ready or suspected before may have changed when it continues.
    """
    identities = {each: lab.identities.get(each) for each in question.line}
    inputs: list[object] = [
        question.line,
        question.metric,
        workload.model_dump(mode="json"),
        identities,
        lab.setup.model_dump(mode="json"),
        *inputs_of(search),
    ]
    return content_key(inputs)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
