"""Takes turns in a laboratory, and stores what comes of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from dsharness.errors import CandidateError
from dsharness.model import Campaign, Sample, Setup, Turn, TurnState
from dslab.search_claim import Claim
from dslab.watcher import Listener
from dsresults.store import Store
from dssearch.planner import refuse_endless_disturbance
from dssearch.repeated_failure import failures_of


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


@dataclass(frozen=True, kw_only=True)
class CampaignRecord:
    """What the store holds of a campaign; whatever is added is stored first."""

    campaign_id: str
    store: Store
    claim: Claim
    samples: list[Sample]
    by_id: dict[str, Turn]

    @classmethod
    def of(cls, campaign: Campaign, store: Store, claim: Claim) -> Self:
        """Read it; turns that were begun and not ended are ended."""
        store.settle_turns(campaign.id)
        return cls(
            campaign_id=campaign.id,
            store=store,
            claim=claim,
            samples=store.samples(campaign_id=campaign.id),
            by_id={turn.id: turn for turn in store.turns(campaign.id)},
        )

    @property
    def turns(self) -> tuple[Turn, ...]:
        return tuple(self.by_id.values())

    def put(self, turn: Turn) -> None:
        self.store.put_turn(turn)
        self.by_id[turn.id] = turn

    def add(self, sample: Sample) -> None:
        self.claim.check()
        self.store.add_sample(sample)
        self.samples.append(sample)


@dataclass(frozen=True, kw_only=True)
class TurnTaker:
    """Takes turns in the lab; what comes of them goes to the record at once."""

    lab: SampleSource
    record: CampaignRecord
    listener: Listener
    ends: Mapping[str, str]  # that could not be measured before the search began
    needs_all: bool  # nothing can be said without each candidate

    def take(self, turn: Turn) -> None:
        self.record.put(turn)
        self.lab.prepare_more(turn.candidates)
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
