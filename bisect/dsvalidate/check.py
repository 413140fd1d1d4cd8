"""What a validation finds: checks, each with a status, its reason, what to do, and evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import Field

from dsharness.model import Value


class Gate(StrEnum):
    """The five questions that a packager asks, in this order."""

    BUILDS = "builds"
    INSTALLS = "installs"
    WORKS = "works"
    PERFORMS = "performs"
    SAFE = "safe"


class Status(StrEnum):
    """How a check ended; an inconclusive one is neither passed nor failed."""

    PASSED = "passed"
    NOT_RUN = "not run"  # it says why; a check that cannot apply here is no objection
    WARNED = "warned"  # worth reading, no reason not to ship
    INCONCLUSIVE = "inconclusive"
    FAILED = "failed"


# What was not run says nothing next to what was.
ORDER = (Status.NOT_RUN, Status.PASSED, Status.WARNED, Status.INCONCLUSIVE, Status.FAILED)

LAST_LINES = 12
Figure = str | int | float


class Check(Value):
    """One thing that was looked at."""

    gate: Gate
    name: str = Field(description="short and unique in its gate, e.g. `reproducible`")
    status: Status
    found: str = Field(description="one plain sentence: what was seen, with its numbers")
    advice: str = Field(default="", description="what a packager can do, unless it passed")
    figures: dict[str, Figure] = Field(default_factory=dict)
    details: tuple[str, ...] = Field(default=(), description="lines, for who wants to know more")
    evidence: tuple[str, ...] = Field(default=(), description="files below the report's folder")
    stops: bool = Field(default=False, description="it failed so that no later step can run")


def last_lines(text: str) -> tuple[str, ...]:
    """Return the end of a long output, which is what a reader is shown."""
    return tuple(text.splitlines()[-LAST_LINES:])


def listed(names: Sequence[str], most: int) -> str:
    """Name the first of them, and say how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def worst(checks: Iterable[Check]) -> Status:
    """Return the worst status of the checks that were run; `not run` if none was."""
    return max((check.status for check in checks), key=ORDER.index, default=Status.NOT_RUN)
