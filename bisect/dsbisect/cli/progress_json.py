"""Progress for programs: one JSON object per line on standard error, without an ETA.

{"at": 12.3, "event": "step", "turn": 4, "candidates": ["…"], "why": "…", "outlook": {…}, …}
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Self, TextIO

from dsharness.model import Boundary, Campaign, Sample
from dssearch.question import Measure, Question


class Events:
    """A ``Watcher`` for programs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def begin(self, rows: Sequence[str], questions: int) -> None:
        self._tell("begin", candidates=list(rows), questions=questions)

    def preparing(self, row: str, what: str) -> None:
        self._tell("preparing", candidate=row, what=what)

    def prepared(self, row: str) -> None:
        self._tell("prepared", candidate=row)

    def failed(self, row: str, why: str) -> None:
        self._tell("failed", candidate=row, why=why)

    def resumed(self, campaign: Campaign, samples: int) -> None:
        self._tell("resumed", campaign=campaign.id, samples=samples)

    def note(self, text: str) -> None:
        self._tell("note", text=text)

    def step(self, question: Question, step: Measure) -> None:
        self._tell(
            "step",
            series=question.series_id,
            workload=question.workload_id,
            turn=step.turn,
            candidates=list(step.candidates),
            why=step.why,
            remaining=step.remaining,
            outlook=asdict(step.outlook) if step.outlook else None,
        )

    def sampled(self, sample: Sample) -> None:
        self._tell("sampled", sample=sample.model_dump(mode="json", exclude={"per_second"}))

    def unmeasurable(self, row: str, why: str) -> None:
        self._tell("unmeasurable", candidate=row, why=why)

    def answered(self, boundary: Boundary) -> None:
        self._tell("answered", answer=boundary.model_dump(mode="json", exclude={"line"}))

    def _tell(self, event: str, **facts: object) -> None:
        at = round(time.monotonic() - self._begin, 2)
        print(json.dumps({"at": at, "event": event, **facts}), file=self._stream, flush=True)
