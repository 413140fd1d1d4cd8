"""What a search over commits found, as values: for text, for JSON, for the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

from pydantic import Field

from dsbuilds.history.culprit import Suspect
from dsharness.measure.metrics import METRICS
from dsharness.model import DECIDER, NO_DIFFERENCE, Boundary, Provenance, Shown, Value
from dsresults.number_text import duration


class Comparison(Value):
    """Two sources measured against each other, interleaved."""

    title: str
    before: str
    after: str
    outcome: Literal["slower", "faster", "none", "unknown", "impossible"]
    effect: float | None = None
    interval: tuple[float, float] | None = None
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
        known = {"none": NO_DIFFERENCE, "impossible": "not possible", "unknown": "unknown"}
        return known.get(self.outcome) or METRICS[self.metric].words.said(self.outcome, self.size)

    @property
    def size(self) -> str:
        """``5.40 times``; empty where no difference was measured."""
        if self.effect is None or self.outcome not in {"slower", "faster"}:
            return ""
        return f"{self.effect:.2f} times"


class EqualCommits(Value):
    """Commits that make the same server; the first one stands for all."""

    candidate: str
    commits: tuple[str, ...]
    kinds: tuple[str, ...] = Field(description="what the others change: docs, tests, web UI ...")


class FunctionRuns(Value):
    """A function that a change touches, and how often it ran."""

    file: str
    name: str
    calls: int = Field(description="while the server was filled, started, loaded and stopped")
    loaded: int = Field(description="of these, under the load alone")


class ExecutedCode(Value):
    """Whether the code that a change touches ran in a server under the load."""

    outcome: Literal["ran", "never ran", "unknown"]
    functions: tuple[FunctionRuns, ...] = ()
    operations: int = Field(default=0, description="of the load during which they were counted")
    note: str = Field(default="", description="why it is not known, or what to add")

    @property
    def only_layout(self) -> bool:
        """Whether the measured effect cannot come from what the change does."""
        return self.outcome == "never ran"


class Culprit(Value):
    """One commit, or those that could not be told apart from it, and the proof."""

    boundary: Boundary
    suspects: tuple[Suspect, ...]
    proof: tuple[Comparison, ...] = ()
    executed: ExecutedCode | None = None
    only_in_good: bool = Field(
        default=False, description="made after the branches have parted: good has it, bad does not"
    )
    backports: tuple[Comparison, ...] = Field(
        default=(), description="the same change on other branches, measured there"
    )

    @property
    def executed_text(self) -> str | None:
        """Whether its code ran, in a sentence; None if nobody asked or it cannot be told."""
        return None if self.executed is None else executed_text(self.executed)

    @property
    def made_it(self) -> str:
        """What it did: ``made it slower``, ``changed it so that it grows less``."""
        words = METRICS[self.boundary.metric].words
        said = words.said(self.boundary.direction)
        return f"changed it so that it {said}" if words.verb else f"made it {said}"

    @property
    def proved(self) -> bool | None:
        """Whether every comparison supports it; None if nothing could be compared."""
        votes = [each.confirms for each in self.proof if each.confirms is not None]
        return all(votes) if votes else None


class TimeSpent(Value):
    """Where the time of one command went: each second counts once."""

    builds_s: float = Field(description="making images, sources built and recalled among them")
    fills_s: float = Field(description="filling directories, and starting their servers")
    runs_s: float = Field(description="measuring")
    rest_s: float = Field(description="all else: the search itself, git, waiting for other labs")
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
    def title(self) -> str:
        """``NAME 3.1.1 to 3.1.2``."""
        project = self.project or self.repository.rstrip("/").rpartition("/")[2]
        return f"{project} {' to '.join(self.ends)}"

    @property
    def equal_text(self) -> str:
        """How many commits were not built, since they make the same server as another one."""
        spared = sum(len(each.commits) - 1 for each in self.equal)
        verb = "make" if spared > 1 else "makes"
        return f"{_counted(spared, 'commit')} {verb} the same server as the one before"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


FUNCTIONS_SHOWN = 5
SHORT = 12  # digits of a hash


def executed_text(code: ExecutedCode) -> str | None:
    """The answer in a sentence, for the page and the terminal; None where there is none."""
    match code.outcome:
        case "ran":
            ran = sorted((each for each in code.functions if each.calls), key=_often, reverse=True)
            loaded = [f"{each.name} ({each.loaded} calls)" for each in ran if each.loaded]
            if not loaded:
                names = _listed([each.name for each in ran])
                return f"what it changes ran, but not under the load: {names}"
            return f"what it changes ran in {code.operations} operations: {_listed(loaded)}"
        case "never ran":
            what = code.note or _listed([each.name for each in code.functions])
            return (
                "none of the changed functions ran during the workload: most likely an effect of "
                f"code layout, not of the change ({what})"
            )
        case "unknown":
            return None
        case _:
            assert_never(code.outcome)


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
    return f"{duration(findings.seconds)}: {', '.join(parts)}; {moments}"


def _often(each: FunctionRuns) -> tuple[int, int]:
    return each.loaded, each.calls


def _listed(names: Sequence[str]) -> str:
    more = len(names) - FUNCTIONS_SHOWN
    return ", ".join(names[:FUNCTIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
