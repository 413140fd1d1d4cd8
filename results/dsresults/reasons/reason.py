"""A finding: a sentence or two, what it rests on, and how sure it is."""

from __future__ import annotations

from enum import StrEnum

from dsharness.model import Value


class Confidence(StrEnum):
    """How a finding is to be taken."""

    MEASURED = "measured"  # this run's own figures say so
    LIKELY = "likely"  # this run's figures fit a change known from elsewhere
    POSSIBLE = "possible"  # a candidate for a cause, to be tested


class Reason(Value):
    """One reason, or one doubt."""

    topic: str
    text: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
