"""A campaign's samples shown to the search again: the same steps, the same answer. Core pure logic.

What a search decides follows only from what was measured, so the stored samples are the log, and
replaying them proves it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dsbisect.search.question import Answer, History, Measure, Question, Search
from dsharness.model import Boundary, Campaign, Sample
from dsresults.compare.cost_ratio import grouped


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
    )


def replay(campaign: Campaign, samples: Iterable[Sample], search: Search) -> Replay:
    """Run a search over a campaign's samples as if they were taken now."""
    question = question_of(campaign)
    stored = {(sample.turn, sample.candidate_id): sample for sample in samples}
    broken = dict(campaign.boundary.unmeasured if campaign.boundary else {})
    latest = max((turn for turn, _ in stored), default=-1)
    shown: list[Sample] = []
    unmeasurable = dict(campaign.unmeasured)
    steps: list[tuple[Measure, tuple[Sample, ...]]] = []
    while True:
        history = History(samples=grouped(shown), unmeasurable=dict(unmeasurable))
        step = search.next_step(question, history)
        if isinstance(step, Answer):
            return Replay(campaign=campaign, steps=tuple(steps), boundary=step.boundary)
        here = [stored.get((step.turn, candidate)) for candidate in step.candidates]
        taken = [sample for sample in here if sample is not None]
        refused = _refused(step, stored, broken)
        if refused is not None:
            unmeasurable[refused] = broken[refused]
            # the number of a turn without a sample was used again for another one
            if any(turn == step.turn and name not in step.candidates for turn, name in stored):
                taken = []
        elif len(taken) < len(here) and not (taken and step.turn < latest):
            # unless it was interrupted in this turn, and continued with the next
            return Replay(campaign=campaign, steps=tuple(steps), boundary=None, wanted=step)
        shown += taken
        steps.append((step, tuple(taken)))


def _refused(
    step: Measure, stored: Mapping[tuple[int, str], Sample], broken: Mapping[str, str]
) -> str | None:
    """The candidate of a turn that turned out not to be measurable."""
    missing = (name for name in step.candidates if (step.turn, name) not in stored)
    return next((name for name in missing if name in broken), None)
