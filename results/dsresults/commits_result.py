"""What a search over commits found, as values: for text, for JSON, for the store."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dsbuilds.history.culprit import Suspect
from dsharness.measure.metrics import METRICS
from dsharness.model import (
    DECIDER,
    NO_DIFFERENCE,
    Boundary,
    Counts,
    Finding,
    Provenance,
    Shown,
    Value,
)
from dsresults.number_text import counted, duration, from_to


class Comparison(Value):
    """Two sources measured against each other, interleaved."""

    title: str
    before: str
    after: str
    outcome: Literal["slower", "faster", "none", "unknown", "impossible"]
    effect: float | None = None
    interval: tuple[float, float] | None = None
    counts: Counts | None = Field(
        default=None,
        exclude_if=lambda counts: counts is None,
        description="of a metric that counts: what both have",
    )
    how: str = Field(
        default="", description="how its source was made, where more was needed than to merge"
    )
    note: str = ""
    confirms: bool | None = Field(
        default=None, description="whether it supports the culprit; None: no evidence"
    )
    builds: tuple[Provenance, ...] = ()
    metric: str = Field(default=DECIDER, description="by which it was decided")

    @property
    def outcome_text(self) -> str:
        """The outcome for readers, in the words of its metric."""
        fixed_words = {"none": NO_DIFFERENCE, "impossible": "not possible", "unknown": "unknown"}
        words = METRICS[self.metric].words
        if self.outcome not in fixed_words and self.counts is not None:
            return f"{words.said(self.outcome)} ({self.size})"
        return fixed_words.get(self.outcome) or words.said(self.outcome, self.size)

    @property
    def size(self) -> str:
        """``5.40 times``, or from where to where; empty where no difference was measured."""
        if self.effect is None or self.outcome not in {"slower", "faster"}:
            return ""
        if self.counts is not None:
            return from_to(self.counts)
        return f"{self.effect:.2f} times"


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
    only_in_good: bool = Field(
        default=False, description="made after the branches have parted: good has it, bad does not"
    )
    backports: tuple[Comparison, ...] = Field(
        default=(), description="the same change on other branches, measured there"
    )

    @property
    def made_it(self) -> str:
        """What it did: ``made it slower``, ``changed it so that it grows less``."""
        words = METRICS[self.boundary.metric].words
        comparison = words.said(self.boundary.direction)
        return f"changed it so that it {comparison}" if words.verb else f"made it {comparison}"

    @property
    def proved(self) -> bool | None:
        """Whether the clean builds of both sides, the first comparison, and all others support it.

        None if the clean builds could not tell: the other builds were made one on the other.
        """
        votes = [comparison.confirms for comparison in self.proof]
        if False in votes:
            return False
        return votes[0] if votes else None

    @property
    def answer(self) -> str:
        """What the search said, and whether its proof bears it out."""
        if self.proof and not self.proved:
            doubt = "NOT PROVED" if self.proved is False else "its proof could not tell"
            return f"{self.boundary.summary}; {doubt}"
        return self.boundary.summary


class TimeSpent(Value):
    """Where the time of one command went: each second of each machine counts once."""

    machines: int = Field(default=1, description="that took turns; parts are of all of them")

    builds_s: float = Field(description="making images, sources built and recalled among them")
    fills_s: float = Field(description="filling directories, and starting their servers")
    runs_s: float = Field(description="measuring")
    rest_s: float = Field(
        description="all else: the search itself, git, waiting for other labs and machines"
    )
    named_s: float = Field(description="until the answer of the search stood: the first culprit")
    proved_s: float | None = Field(
        default=None, description="until that was proved; None: there was nothing to prove"
    )


class CommitFindings(Value):
    """The whole answer of `dsbisect bisect commits`."""

    format: Literal[1] = 1
    repository: Shown
    good: str
    bad: str
    project: str = Field(default="", description="what its releases are called")
    good_name: str = Field(default="", description="the nearest release or branch: 3.1.1")
    bad_name: str = ""
    workload: str
    settings: str
    commits: int = Field(description="in the range, whatever they change")
    equal: tuple[EqualCommits, ...] = Field(default=(), description="with more than one commit")
    whole: Boundary
    ends_compared: Comparison | None = Field(
        default=None, description="several builds of both, where only these could decide"
    )
    culprits: tuple[Culprit, ...] = ()
    left: tuple[tuple[str, str], ...] = Field(
        default=(), description="ends of lines that may hold another step, not searched"
    )
    notes: tuple[str, ...] = ()
    campaigns: tuple[str, ...] = ()
    builds: int = 0
    samples: int = 0
    seconds: float = 0.0
    spent: TimeSpent | None = None

    @property
    def spent_text(self) -> str | None:
        """Where the time went, on a line."""
        return None if self.spent is None else spent_text(self, self.spent)

    @property
    def ends(self) -> tuple[str, str]:
        """How good and bad are called: by the nearest release, or by the hash."""
        return self.good_name or self.good[:SHORT], self.bad_name or self.bad[:SHORT]

    @property
    def left_text(self) -> str:
        """Where another step may be; empty where nothing is left to search."""
        lines = " and ".join(f"{first}..{last}" for first, last in self.left)
        return lines and f"another step may lie in {lines}: `--all` looks for it"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know: what is left, and the notes."""
        return tuple(filter(None, (self.left_text, *self.notes)))

    @property
    def title(self) -> str:
        """``NAME 3.1.1 to 3.1.2``."""
        project = self.project or self.repository.rstrip("/").rpartition("/")[2]
        return f"{project} {' to '.join(self.ends)}"

    @property
    def address(self) -> str:
        """Where anybody finds the repository; empty where its host is not known."""
        suspects = (suspect for culprit in self.culprits for suspect in culprit.suspects)
        return next((suspect.repository for suspect in suspects if suspect.repository), "")

    @property
    def finding(self) -> Finding:
        """All of it for the store, as found now."""
        sentences = [culprit.answer for culprit in self.culprits] or [self.whole.summary]
        return Finding.now(
            "commits", self, title=self.title, answer="; ".join(sentences), campaigns=self.campaigns
        )

    @property
    def equal_text(self) -> str:
        """How many commits were not built, since they make the same server as another one."""
        spared = sum(len(equal_commits.commits) - 1 for equal_commits in self.equal)
        verb = "make" if spared > 1 else "makes"
        return f"{counted(spared, 'commit')} {verb} the same server as the one before"


SHORT = 12  # digits of a hash


def spent_text(findings: CommitFindings, spent: TimeSpent) -> str:
    """The sum, its parts with their numbers, and when the answer stood."""
    parts = (
        f"builds {duration(spent.builds_s)} ({findings.builds})",
        f"fills {duration(spent.fills_s)}",
        f"runs {duration(spent.runs_s)} ({findings.samples})",
        f"rest {duration(spent.rest_s)}",
    )
    several = "the first " if len(findings.culprits) > 1 else ""
    stood = f"{several}named" if findings.culprits else "answered"
    moments = f"{stood} after {duration(spent.named_s)}"
    if spent.proved_s is not None:
        proved = "proved" if findings.culprits and findings.culprits[0].proved else "proof ended"
        moments += f", {proved} after {duration(spent.proved_s)}"
    text = duration(findings.seconds)
    if spent.machines > 1:
        machines = "both" if spent.machines == 2 else "all"
        summed = duration(spent.machines * findings.seconds)
        text += f" on {spent.machines} machines, {summed} of {machines}"
    return f"{text}: {', '.join(parts)}; {moments}"
