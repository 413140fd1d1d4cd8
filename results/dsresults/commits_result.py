"""What a search over commits found, as values: for text, for JSON, for the store."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dsbuilds.history.culprit import Suspect
from dsharness.model import NO_DIFFERENCE, Boundary, Provenance, Shown, Value


class Comparison(Value):
    """Two sources measured against each other, interleaved."""

    title: str
    before: str
    after: str
    outcome: Literal["slower", "faster", "none", "unknown", "impossible"]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    note: str = ""
    confirms: bool | None = Field(
        default=None, description="whether it supports the culprit; None: no evidence"
    )
    builds: tuple[Provenance, ...] = ()

    @property
    def outcome_text(self) -> str:
        """The outcome for readers."""
        return {"none": NO_DIFFERENCE, "impossible": "not possible"}.get(self.outcome, self.outcome)


class EqualCommits(Value):
    """Commits that make the same server; the first one stands for all."""

    candidate: str
    commits: tuple[str, ...]
    kinds: tuple[str, ...] = Field(description="what the others change: docs, tests, web UI ...")


class Culprit(Value):
    """One commit, or those that could not be told apart from it, and the proof."""

    boundary: Boundary
    suspects: tuple[Suspect, ...]
    proof: tuple[Comparison, ...] = ()
    backports: tuple[Comparison, ...] = Field(
        default=(), description="the same change on other branches, measured there"
    )

    @property
    def proved(self) -> bool | None:
        """Whether every comparison supports it; None if nothing could be compared."""
        said = [each.confirms for each in self.proof if each.confirms is not None]
        return all(said) if said else None


class CommitFindings(Value):
    """The whole answer of `dsbisect bisect commits`."""

    format: Literal[1] = 1
    repository: Shown
    good: str
    bad: str
    workload: str
    settings: str
    commits: int = Field(description="in the range, whatever they change")
    classes: tuple[EqualCommits, ...] = Field(default=(), description="with more than one commit")
    whole: Boundary
    culprits: tuple[Culprit, ...] = ()
    notes: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()
    builds: int = 0
    samples: int = 0
    seconds: float = 0.0
