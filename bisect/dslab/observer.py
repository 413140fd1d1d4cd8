"""What a lab and a search say of their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dsharness.model import Boundary, Campaign, Sample
from dssearch.question import Measure, Question


class Listener(Protocol):
    """Receives what happens."""

    def resumed(self, campaign: Campaign, samples: int) -> None: ...

    def step(self, question: Question, step: Measure) -> None: ...

    def sampled(self, sample: Sample) -> None: ...

    def unmeasurable(self, row: str, why: str) -> None: ...

    def answered(self, boundary: Boundary) -> None: ...


class Preparation(Protocol):
    """Receives how each candidate's preparation ended."""

    def prepared(self, row: str) -> None: ...

    def failed(self, row: str, why: str) -> None: ...


class Observer(Listener, Preparation, Protocol):
    """A listener that also receives preparations."""

    def preparing(self, row: str, news: str) -> None: ...

    def note(self, text: str) -> None: ...

    def begin(self, rows: Sequence[str], questions: int) -> None: ...
