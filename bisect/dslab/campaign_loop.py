"""A campaign in the lab: measure what is asked for, store at once, go on where it was stopped."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Literal

from dsharness.content_key import content_key
from dsharness.model import Boundary, Campaign, Turn, Workload
from dslab.search_claim import Claim, claimed
from dslab.turn_taker import CampaignRecord, SampleSource, TurnTaker
from dslab.watcher import Listener
from dsresults.store import Store
from dssearch.planner import advance, history_of
from dssearch.question import Answer, Enough, Question, Search
from dssearch.search_record import choice_of, inputs_of, search_of

Kind = Literal["rows", "commits", "measure", "validate"]


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
    campaign = _open_campaign(question, workload, search, lab, store, kind)
    record = CampaignRecord.of(campaign, store, claim)
    if record.samples or record.turns:
        listener.resumed(campaign, len(record.samples))
        if search.looks:
            search = search_of(campaign)  # with the same costs, so that a replay decides the same
    taker = TurnTaker(
        lab=lab,
        record=record,
        listener=listener,
        ends=dict(lab.unmeasurable) if kind == "commits" else {},
        needs_all=not search.looks,
    )
    boundary = _answered(question, workload, search, taker)
    if boundary is None:  # a lab can always measure more, so this is enough
        return campaign
    finished_at = _now()
    claim.check()
    store.finish_campaign(campaign.id, boundary, finished_at)
    listener.answered(boundary)
    return campaign.model_copy(update={"boundary": boundary, "finished_at": finished_at})


def _answered(
    question: Question, workload: Workload, search: Search, taker: TurnTaker
) -> Boundary | None:
    """Plan a turn from what is stored, take it, store it, and plan again until the answer."""
    setup, unmeasurable = taker.lab.setup, dict(taker.lab.unmeasurable)
    while True:
        record = taker.record
        history = history_of(record.samples, record.turns, unmeasurable, taker.ends)
        step = advance(question, search, history, record.turns)
        if isinstance(step, Answer):
            return step.boundary
        if isinstance(step, Enough):
            return None
        taker.listener.step(question, step)
        turn = Turn(
            campaign_id=record.campaign_id,
            number=step.turn,
            attempt=step.attempt,
            candidates=step.candidates,
            workload=workload,
            way=setup.procedure.way,
            machine=setup.machine.id,
        )
        taker.take(turn)


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
) -> Campaign:
    known = unfinished(question, workload, search, lab, store, kind)
    if known is not None:
        return known
    new = _campaign(question, kind, _fingerprint(question, workload, search, lab))
    campaign = new.model_copy(
        update={"unmeasured": dict(lab.unmeasurable), "search": choice_of(search)}
    )
    store.add_campaign(campaign)
    return campaign


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
