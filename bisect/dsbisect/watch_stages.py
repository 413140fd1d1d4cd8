"""The moments of a watch's search: both ends differ; measured again they still do, and it goes on.

They are told when they begin, so that who looks from elsewhere sees them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dsharness.model import Boundary, Campaign, Sample
from dslab.watcher import Watcher
from dsresults.number_text import times
from dsresults.watch.alarms import AlarmState
from dssearch.question import Measure, Question

LIKELY = 0.5  # the chance that there is a step at all


@dataclass(kw_only=True)
class SearchStages(Watcher):
    """Passes on what it is told, and tells of a tip that seems worse."""

    watcher: Watcher
    reference: str  # as candidates are called
    tip: str
    began: Callable[[AlarmState, str], None]
    stage: AlarmState | None = None
    _samples: list[Sample] = field(default_factory=list)

    def step(self, question: Question, step: Measure) -> None:
        ends = {self.reference, self.tip}
        whole = {question.line[0], question.line[-1]} == ends
        ratio = self._ratio(question)
        likely = step.outlook is not None and step.outlook.none < LIKELY
        if whole and likely and ratio is not None and ratio > 1:
            said = question.decider.words.said("slower", times(ratio))
            note = f"so far {self.tip} {said} than {self.reference}"
            if self.stage is None:
                self._begin(AlarmState.NEW, note)
            if self.stage is AlarmState.NEW and not set(step.candidates) <= ends:
                self._begin(AlarmState.BISECTING, note)
        self.watcher.step(question, step)

    def _begin(self, stage: AlarmState, note: str) -> None:
        self.began(stage, note)  # told again where it could not be kept
        self.stage = stage

    def _ratio(self, question: Question) -> float | None:
        """How much worse the tip is in the mean; None until both were measured."""
        means: list[float] = []
        for name in (self.tip, self.reference):
            each = [one for one in self._samples if one.candidate_id == name and one.valid]
            values = list(filter(None, map(question.decider.slowness, each)))
            if not values:
                return None
            means.append(sum(values) / len(values))
        return means[0] / means[1]

    def sampled(self, sample: Sample) -> None:
        self._samples.append(sample)
        self.watcher.sampled(sample)

    def resumed(self, campaign: Campaign, samples: int) -> None:
        self.watcher.resumed(campaign, samples)

    def unmeasurable(self, row: str, why: str) -> None:
        self.watcher.unmeasurable(row, why)

    def answered(self, boundary: Boundary) -> None:
        self.watcher.answered(boundary)

    def prepared(self, row: str) -> None:
        self.watcher.prepared(row)

    def failed(self, row: str, why: str) -> None:
        self.watcher.failed(row, why)

    def preparing(self, row: str, what: str) -> None:
        self.watcher.preparing(row, what)

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self.watcher.begin(rows, questions)
