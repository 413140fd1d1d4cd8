"""What a validation finds: checks, each with a status, its reason, what to do, and evidence.

All of them together are the answer to a packager, as the report, the JSON file and the attestation
say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from pydantic import Field, computed_field

from dsharness.model import Finding, Value


class Gate(StrEnum):
    """The five questions that a packager asks, in this order."""

    BUILDS = "builds"
    INSTALLS = "installs"
    WORKS = "works"
    PERFORMS = "performs"
    SAFE = "safe"

    def check(
        self,
        name: str,
        status: Status,
        sentence: str,
        *,
        advice: str = "",
        figures: Mapping[str, Figure] | None = None,
        details: Iterable[str] = (),
        evidence: Iterable[str] = (),
        stops: bool = False,
    ) -> Check:
        """Make a check of this gate; one that passed needs no advice."""
        return Check(
            gate=self,
            name=name,
            status=status,
            found=sentence,
            stops=stops,
            advice="" if status is Status.PASSED else advice,
            figures=dict(figures or {}),
            details=tuple(details),
            evidence=tuple(evidence),
        )


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


class ShipAnswer(StrEnum):
    """Answer to "may it be shipped?"."""

    SHIP = "ship"
    DO_NOT_SHIP = "do not ship"
    INCONCLUSIVE = "inconclusive"


def answer_of(checks: Sequence[Check]) -> ShipAnswer:
    """A gate of which nothing was run leaves the answer open: lack of data is no pass."""
    if any(check.status is Status.FAILED for check in checks):
        return ShipAnswer.DO_NOT_SHIP
    gates = [worst(check for check in checks if check.gate is gate) for gate in Gate]
    open_ = any(check.status is Status.INCONCLUSIVE for check in checks)
    return ShipAnswer.INCONCLUSIVE if open_ or Status.NOT_RUN in gates else ShipAnswer.SHIP


class PackageFile(Value):
    """A package that was validated."""

    name: str
    sha256: str


class Validation(Value):
    """Everything that was found, and what follows from it."""

    row: str
    change: str = Field(description="in words: the edits, patches or packages")
    workloads: tuple[str, ...] = Field(default=(), description="of the profile")
    settings: str = "default"
    margin_pct: float = Field(default=2.0, description="slower by less is not worse")
    max_pairs: int = Field(default=60, description="of runs of each workload")
    accept_weaker: bool = Field(default=False, description="password hashing")
    stock: str = Field(description="the server's package and version before")
    patched: str = Field(description="and after")
    packages: tuple[PackageFile, ...] = ()
    command: str = Field(description="that repeats it")
    machine: str = ""
    started_at: str
    seconds: float
    checks: tuple[Check, ...]

    @computed_field  # type: ignore[prop-decorator]  # programs that read the JSON need it
    @property
    def answer(self) -> ShipAnswer:
        return answer_of(self.checks)

    @property
    def finding(self) -> Finding:
        """Return all of it for the store, as found now."""
        title = f"{self.change} on {self.row}"
        return Finding.now("validation", self, title=title, answer=self.answer)

    def of(self, gate: Gate) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.gate is gate)

    @property
    def reasons(self) -> tuple[Check, ...]:
        """Return what the answer rests on: what failed, or what is open, or what to read."""
        for status in (Status.FAILED, Status.INCONCLUSIVE, Status.WARNED):
            checks = tuple(check for check in self.checks if check.status is status)
            if checks:
                return checks
        return ()
