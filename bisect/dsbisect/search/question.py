"""A search: from everything that was measured to the next step. Core pure logic, no I/O.

The campaign asks ``next_step`` again and again and does what it says. A search keeps no state, so
an interrupted campaign continues by showing it the stored samples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from dsharness.model import Boundary, Sample


@dataclass(frozen=True, kw_only=True)
class Question:
    """The place along ``line`` where the workload turns slow."""

    series_id: str
    line: tuple[str, ...]
    workload_id: str
    settings_id: str

    def boundary(self, **facts: object) -> Boundary:
        """An answer to this; without a candidate on either side unless ``facts`` name them."""
        return Boundary.model_validate(
            {
                "series_id": self.series_id,
                "line": self.line,
                "workload_id": self.workload_id,
                "settings_id": self.settings_id,
                "before": None,
                "after": None,
                **facts,
            }
        )


@dataclass(frozen=True, kw_only=True)
class History:
    """Everything that is known so far."""

    samples: Mapping[str, tuple[Sample, ...]] = field(default_factory=dict)
    unmeasurable: Mapping[str, str] = field(default_factory=dict)  # candidate -> why

    def of(self, candidate: str) -> tuple[Sample, ...]:
        return self.samples.get(candidate, ())


@dataclass(frozen=True, kw_only=True)
class Share:
    """One share of the probability: the first changed candidate is one of these."""

    after: str  # the last candidate that is not
    last: str
    candidates: int
    chance: float


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """The probabilities before the next step, to be shown; from 0 to 1."""

    shares: tuple[Share, ...]  # the likeliest first
    none: float
    drift: float
    two: float
    noise_pct: float


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Measure these candidates in this order, all as one turn."""

    turn: int
    candidates: tuple[str, ...]
    why: str
    remaining: int  # samples still expected after this turn, for the ETA
    likely: tuple[str, ...] = ()  # what may be measured next, the most probable first
    outlook: Outlook | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The search is over."""

    boundary: Boundary


class Search(Protocol):
    """A way to search: a value, so that equal ones decide the same."""

    def next_step(self, question: Question, history: History) -> Measure | Answer: ...
