"""Runs of two candidates that an earlier campaign took: they count, however sure that had to be.

A search of many candidates chooses which to measure; of two, only how often.
"""

from __future__ import annotations

from dataclasses import replace

from dsharness.model import Campaign, TurnState
from dslab.campaign_loop import CampaignOrder, begun
from dssearch.search_record import question_of, search_of


def begin_with_earlier(order: CampaignOrder) -> None:
    """Begin a campaign with a copy of what the largest one of the same environment has measured.

    The earlier one keeps its answer, and its runs.
    """
    store = order.store
    earlier = [campaign for campaign in store.campaigns() if _is_alike(order, campaign)]
    runs = max(
        (store.samples(campaign_id=campaign.id) for campaign in earlier), key=len, default=[]
    )
    if not runs:
        return
    campaign = begun(order)
    copied = {"campaign_id": campaign.id}
    for turn in store.turns(runs[0].campaign_id):
        if turn.state is not TurnState.DONE:
            continue
        taken = turn.model_copy(update=copied)
        for run in runs:
            if (run.turn, run.attempt) == (turn.number, turn.attempt):
                identity = {"id": taken.sample_id(run.candidate_id)}
                store.put(run.model_copy(update=copied | identity))
        store.put(taken)


def _is_alike(order: CampaignOrder, campaign: Campaign) -> bool:
    """Whether it differs in its search alone."""
    if campaign.kind != order.kind or question_of(campaign) != order.question:
        return False
    return replace(order, search=search_of(campaign)).fingerprint == campaign.fingerprint
