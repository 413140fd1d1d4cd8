"""A finding: a sentence or two, what it is based on, and how sure it is."""

from __future__ import annotations

from enum import StrEnum

from dsharness.model import Value


class Confidence(StrEnum):
    """How sure a finding is."""

    MEASURED = "measured"  # this run's own figures show it
    LIKELY = "likely"  # this run's figures fit a known change
    POSSIBLE = "possible"  # a possible cause, to be tested


class Reason(Value):
    """One reason, or one doubt."""

    topic: str
    text: str
    confidence: Confidence
    evidence: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
