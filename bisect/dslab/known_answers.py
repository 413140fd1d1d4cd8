"""Answers that a store has: what was asked before is never asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsharness.model import Campaign, CampaignKind, Workload
from dslab.campaign_loop import Answers
from dssearch.question import Question, Search
from dssearch.search_record import question_of


class UnansweredError(Exception):
    """A question has no answer yet: nothing that follows from it can be asked."""


class UnpreparedError(UnansweredError):
    """It needs a lab that no machine has prepared yet, or that somebody looks at its servers."""


def asked_before(
    campaigns: Sequence[Campaign], question: Question, kind: CampaignKind
) -> Campaign | None:
    """The campaign that asks this: its number depends on which answers came first."""
    same = (each for each in campaigns if (each.kind, question_of(each)) == (kind, question))
    return next(same, None)


@dataclass(frozen=True, kw_only=True)
class KnownAnswers:
    """``Answers`` that the store has; UnansweredError for one that it has not."""

    campaigns: Sequence[Campaign]
    open_too: bool = False  # those that more may be asked of

    def within(self, lab: str) -> Answers:
        """The same: an answer is found by its question."""
        del lab
        return self

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        del workload, search  # the same as when it was planned
        campaign = asked_before(self.campaigns, question, kind)
        if campaign is None or (campaign.boundary is None and not self.open_too):
            raise UnansweredError
        return campaign
