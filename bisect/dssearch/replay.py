"""A campaign's samples shown to the search again: the same steps, the same answer. Core pure logic.

What a search decides follows only from what was measured, so the stored samples are the log, and
replaying them proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dsharness.model import Boundary, Campaign, Sample
from dssearch.question import History, Measure, Question, Search
from dssearch.search_loop import TurnEnd, run_search


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The steps a search takes over stored samples, and where that leads."""

    campaign: Campaign
    steps: tuple[tuple[Measure, tuple[Sample, ...]], ...]
    boundary: Boundary | None  # None: the log ends before the answer
    wanted: Measure | None = None  # what would be measured next

    @property
    def same(self) -> bool | None:
        """Whether the stored answer was found again; None if one of the two is missing."""
        if self.boundary is None or self.campaign.boundary is None:
            return None
        return self.boundary == self.campaign.boundary


def question_of(campaign: Campaign) -> Question:
    """The campaign's question."""
    line = campaign.line or (campaign.boundary.line if campaign.boundary else ())
    return Question(
        series_id=campaign.series_id,
        line=line,
        workload_id=campaign.workload_id,
        settings_id=campaign.settings_id,
        metric=campaign.metric,
    )


def replay(campaign: Campaign, samples: Iterable[Sample], search: Search) -> Replay:
    """Let a search go over a campaign's samples as if they were taken now."""
    log = _Log(
        stored={(sample.turn, sample.candidate_id): sample for sample in samples},
        broken=dict(campaign.boundary.unmeasured if campaign.boundary else {}),
    )
    begun = History(unmeasurable=campaign.unmeasured)
    end = run_search(question_of(campaign), search, log, begun)
    return Replay(
        campaign=campaign, steps=tuple(log.steps), boundary=end.boundary, wanted=end.wanted
    )


@dataclass(kw_only=True)
class _Log:
    """A ``TurnSource``: what was stored."""

    stored: Mapping[tuple[int, str], Sample]
    broken: Mapping[str, str]  # what turned out not to be measurable
    steps: list[tuple[Measure, tuple[Sample, ...]]] = field(default_factory=list)

    def turn(self, step: Measure) -> TurnEnd | None:
        here = [self.stored.get((step.turn, candidate)) for candidate in step.candidates]
        taken = tuple(sample for sample in here if sample is not None)
        refused = self._refused(step)
        if refused is not None:
            # the number of a turn that came to nothing was given again, to another one
            if any(turn == step.turn and name not in step.candidates for turn, name in self.stored):
                taken = ()
        elif len(taken) < len(here):
            return None
        self.steps.append((step, taken))
        return TurnEnd(
            samples=taken, unmeasurable={refused: self.broken[refused]} if refused else {}
        )

    def _refused(self, step: Measure) -> str | None:
        """The candidate of a turn that turned out not to be measurable."""
        missing = (name for name in step.candidates if (step.turn, name) not in self.stored)
        return next((name for name in missing if name in self.broken), None)
