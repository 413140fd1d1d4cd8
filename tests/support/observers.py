"""An observer that keeps what it is told; a real class, so that a misspelt callback fails."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dsharness.model import Boundary, Campaign, Sample
from dslab.observer import Observer
from dssearch.question import Measure, Question


@dataclass
class RecordingObserver(Observer):
    """Everything a lab or a search may say, in order."""

    records: list[tuple[object, ...]] = field(default_factory=list)

    @property
    def names(self) -> list[object]:
        return [name for name, *_ in self.records]

    def _record(self, *facts: object) -> None:
        self.records.append(facts)

    def resumed(self, campaign: Campaign, samples: int) -> None:
        self._record("resumed", campaign, samples)

    def step(self, question: Question, step: Measure) -> None:
        self._record("step", question, step)

    def sampled(self, sample: Sample) -> None:
        self._record("sampled", sample)

    def unmeasurable(self, row: str, why: str) -> None:
        self._record("unmeasurable", row, why)

    def answered(self, boundary: Boundary) -> None:
        self._record("answered", boundary)

    def prepared(self, row: str) -> None:
        self._record("prepared", row)

    def failed(self, row: str, why: str) -> None:
        self._record("failed", row, why)

    def preparing(self, row: str, news: str) -> None:
        self._record("preparing", row, news)

    def note(self, text: str) -> None:
        self._record("note", text)

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self._record("begin", rows, questions)
