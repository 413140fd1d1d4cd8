"""The answer to a packager, as the report, the JSON file and the attestation say it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from pydantic import Field, computed_field

from dsharness.model import Finding, Value
from dsvalidate.check import Check, Gate, Status, worst


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
            found = tuple(check for check in self.checks if check.status is status)
            if found:
                return found
        return ()
