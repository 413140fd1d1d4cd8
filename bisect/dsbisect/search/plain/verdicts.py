"""What the measurements say about each candidate. Core pure logic, no I/O.

A candidate is *unchanged* (like the line's first end) or *changed* (like its last). Which of the
two is FAST depends on the ends: usually the first, and the other way round for an improvement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property

from dsbisect.search.question import History, Question
from dsbisect.search.unmeasurable import why_not
from dsharness.measure.metrics import METRICS
from dsharness.model import Outcome, Sample, Verdict
from dsresults.compare.cost_ratio import Ratio, compare_by


@dataclass(frozen=True, kw_only=True)
class Policy:
    """How much evidence is enough."""

    least_turns: int = 3
    boundary_turns: int = 5
    most_turns: int = 9
    smallest_effect: float = 1.10  # ends closer than this count as equal
    survey_up_to: int = 6  # lines up to this length are measured completely, to see every step
    changed_at_most: float = 2.0  # this many times the first end is a change in any case


class Ends(Enum):
    OPEN = auto()
    DIFFER = auto()
    AGREE = auto()


class Side(Enum):
    UNCHANGED = auto()
    CHANGED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, kw_only=True)
class CandidateView:
    """A question and its history, judged by a policy."""

    question: Question
    history: History
    policy: Policy

    @cached_property
    def line(self) -> tuple[str, ...]:
        """The candidates that can be measured; an unmeasurable end moves inwards."""
        return tuple(c for c in self.question.line if self.why_not(c) is None)

    def why_not(self, candidate: str) -> str | None:
        """Why a candidate cannot be measured; None when it can."""
        return why_not(self.history, candidate)

    def _own(self, candidate: str) -> list[Sample]:
        """Its runs; what was disturbed from outside is repeated, and does not count."""
        return [sample for sample in self.history.of(candidate) if not sample.disturbed]

    def ratio(self, candidate: str, reference: str) -> Ratio | None:
        decider = self.question.decider
        return compare_by(decider, self.history.of(candidate), self.history.of(reference))

    def pairs(self, candidate: str, reference: str) -> int:
        ratio = self.ratio(candidate, reference)
        return ratio.pairs if ratio else 0

    def exhausted(self, candidate: str, reference: str) -> bool:
        """Whether enough turns were spent, usable or not."""
        turns = {sample.turn for sample in self._own(reference)}
        spent = sum(sample.turn in turns for sample in self._own(candidate))
        return spent >= self.policy.most_turns

    @cached_property
    def ends_ratio(self) -> Ratio | None:
        if len(self.line) < 2:
            return None
        return self.ratio(self.line[-1], self.line[0])

    @property
    def ends(self) -> Ends:
        """Open until the interval is clear of 1, or lies wholly within the smallest effect."""
        if len(self.line) < 2:
            return Ends.OPEN
        ratio = self.ends_ratio
        if ratio is None or ratio.pairs < self.policy.least_turns:
            spent = self.exhausted(self.line[-1], self.line[0])
            return Ends.AGREE if spent else Ends.OPEN
        bound = self.policy.smallest_effect
        if ratio.differs and not 1 / bound < ratio.value < bound:
            return Ends.DIFFER
        surely_equal = 1 / bound < ratio.low and ratio.high < bound
        if surely_equal and ratio.pairs >= self.policy.boundary_turns:
            return Ends.AGREE
        return Ends.AGREE if self.exhausted(self.line[-1], self.line[0]) else Ends.OPEN

    @property
    def slower(self) -> bool:
        """Whether the line's last end is the slow one."""
        ratio = self.ends_ratio
        return ratio is None or ratio.value >= 1

    @property
    def threshold(self) -> float:
        """Half-way between the ends on a log scale, but no more than ``changed_at_most``."""
        ratio = self.ends_ratio
        if ratio is None:
            return self.policy.changed_at_most
        effect = max(ratio.value, 1 / ratio.value)
        return min(math.sqrt(effect), self.policy.changed_at_most)

    def side(self, candidate: str) -> tuple[Side, str]:
        """On which side of the threshold a candidate's whole interval lies, and why."""
        if self.why_not(candidate) is not None:
            return Side.UNKNOWN, str(self.why_not(candidate))
        if candidate in {self.line[0], self.line[-1]}:
            first = candidate == self.line[0]
            return (Side.UNCHANGED if first else Side.CHANGED), "an end of the line"
        ratio = self.ratio(candidate, self.line[0])
        if ratio is None or ratio.pairs < self.policy.least_turns:
            return Side.UNKNOWN, "not measured enough"
        toward_last = ratio if self.slower else ratio.inverse()
        threshold = self.threshold
        if toward_last.low <= threshold <= toward_last.high:
            return Side.UNKNOWN, f"its interval includes the threshold of {threshold:.2f} times"
        side = Side.CHANGED if toward_last.low > threshold else Side.UNCHANGED
        if self._witness_disagrees(candidate, side):
            decider = self.question.decider
            why = f"{decider.label} and {decider.witness} disagree; see both in the samples"
            return Side.UNKNOWN, why
        word = "slower" if self.slower else "faster"
        return side, (
            f"{toward_last.value:.2f} times {word} than {self.line[0]}, "
            f"where {threshold:.2f} or more is a change"
        )

    def _witness_disagrees(self, candidate: str, side: Side) -> bool:
        """The witness (the rate alone sees locks and queues) lies wholly on the other side."""
        witness = self.question.decider.witness
        if witness is None:
            return False
        metric = METRICS[witness]
        first, own = self.history.of(self.line[0]), self.history.of(candidate)
        found = compare_by(metric, metric.telling(own), metric.telling(first))
        if found is None:
            return False
        rate = found if self.slower else found.inverse()
        if side is Side.CHANGED:
            return rate.high < self.threshold
        return rate.low > self.threshold

    def verdict(self, candidate: str) -> Verdict:
        side, why = self.side(candidate)
        ratio = self.ratio(candidate, self.line[0]) if self.line else None
        fast_side = Side.UNCHANGED if self.slower else Side.CHANGED
        if side is Side.UNKNOWN or self.ends is not Ends.DIFFER:
            outcome = Outcome.INCONCLUSIVE
        else:
            outcome = Outcome.FAST if side is fast_side else Outcome.SLOW
        return Verdict(
            candidate=candidate,
            outcome=outcome,
            why=why,
            ratio_to_first=ratio.value if ratio else None,
            interval=ratio.interval if ratio and ratio.pairs > 1 else None,
            samples=tuple(sample.id for sample in self.history.of(candidate) if sample.valid),
        )
