"""What was asked, what was done for it, and what was answered: campaigns, turns, findings."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from dsharness.model.measured import WayName
from dsharness.model.value import Amount, Count, Finite, Ratio, Share, Value
from dsharness.model.workload import Workload


class Outcome(StrEnum):
    """An infrastructure failure is never FAST or SLOW."""

    FAST = "fast"
    SLOW = "slow"
    INCONCLUSIVE = "inconclusive"


class Verdict(Value):
    """What one candidate turned out to be, with its evidence."""

    candidate: str
    outcome: Outcome
    why: str
    ratio_to_first: Ratio | None = Field(
        default=None, description="by the deciding metric, over the first end; above 1 is slower"
    )
    interval: tuple[Ratio, Ratio] | None = None
    samples: tuple[str, ...] = Field(default=(), description="sample ids")


class CostStep(Value):
    """A difference between two neighbours in a line."""

    before: str
    after: str
    ratio: Ratio
    interval: tuple[Ratio, Ratio]


class Counts(Value):
    """Both sides of a step in what an operation takes, as they were counted."""

    unit: str = Field(description="what is counted, as in: from 0 to 2 flushes an operation")
    before: Finite
    after: Finite
    before_interval: tuple[Finite, Finite]
    after_interval: tuple[Finite, Finite]
    difference_interval: tuple[Finite, Finite]


DECIDER = "cost"  # the metric that decides a search unless another is asked for
NO_DIFFERENCE = "no difference"  # what the direction "none" is called everywhere


class Boundary(Value):
    """The answer for one line of a series and one workload."""

    series_id: str
    line: tuple[str, ...] = Field(default=(), description="the candidates, in order")
    workload_id: str
    settings_id: str
    metric: str = Field(default=DECIDER, description="the one that decided")
    before: str | None = Field(description="the last candidate that is like the line's first")
    after: str | None = Field(description="the first candidate that is like the line's last")
    suspects: tuple[str, ...] = Field(
        default=(),
        description="all that may be the first changed one: `after`, and before it what could not "
        "be measured",
    )
    found: bool
    direction: Literal["slower", "faster", "none", "unknown"]
    effect: Ratio | None = Field(
        default=None, description="of counts with what is added to them: `counts` has them as such"
    )
    effect_interval: tuple[Ratio, Ratio] | None = None
    effect_level: Share = Field(default=0.95, description="of that interval")
    counts: Counts | None = Field(
        default=None,
        exclude_if=lambda counts: counts is None,
        description="of a metric that counts: what both sides have, at the same level",
    )
    smallest_visible_pct: Ratio | None = None
    summary: str
    unmeasured: dict[str, str] = Field(default_factory=dict, description="candidate -> why")
    steps: tuple[CostStep, ...] = Field(
        default=(), description="every difference between neighbours, the boundary's among them"
    )
    odd: tuple[CostStep, ...] = Field(
        default=(), description="candidates that differ alone: what follows is like what was before"
    )
    verdicts: tuple[Verdict, ...] = ()
    confidence: Share | None = Field(
        default=None, description="chance that what is said is so; None from the plain search"
    )
    chances: dict[str, Share] = Field(default_factory=dict, description="of each suspect")
    step_chances: dict[str, Share] = Field(
        default_factory=dict,
        description="of each candidate, that there is a change at it; smaller ones are left out",
    )
    also: tuple[str, ...] = Field(default=(), description="suspects of a second step")
    shape: Literal["ramp", "ends", "builds"] | None = Field(
        default=None,
        description='what a difference looks like: of a "ramp", `suspects` is the range; "ends": '
        'the ends agree, and nothing is said of what lies between them; "builds": no more than '
        "builds of one source differ by, or undecided because only further builds would tell",
    )
    witness: Literal["agrees", "cannot tell", "contradicts"] | None = Field(
        default=None, description="what its witness says of a step that the deciding metric shows"
    )


class SearchChoice(Value):
    """Which search, and its options as that search writes and reads them."""

    name: str = Field(default="none", description="a measurement has none")
    options: dict[str, JsonValue] = Field(default_factory=dict)


CampaignKind = Literal[
    "rows",
    "commits",
    "measure",
    "levels",
    "sizes",
    "endurance",
    "schemes",
    "explain",
    "compare",
    "timeline",
]


class Campaign(Value):
    """One search: what was asked, and in the end what was answered."""

    id: str
    kind: CampaignKind = "rows"
    series_id: str
    line: tuple[str, ...] = Field(default=(), description="the candidates asked about, in order")
    unmeasured: dict[str, str] = Field(
        default_factory=dict, description="what was known not to be measurable at the start"
    )
    workload_id: str
    settings_id: str
    metric: str = Field(default=DECIDER, description="the one that is to decide")
    started_at: str
    finished_at: str | None = None
    boundary: Boundary | None = None
    fingerprint: str = Field(
        default="", description="hash of all that must be the same for its samples to count"
    )
    search: SearchChoice = SearchChoice()
    lab: str = Field(
        default="",
        exclude_if=lambda name: not name,
        description="of a run that several machines share: which of its labs",
    )


NAMESPACE = uuid.UUID("67428f35-4824-572f-aa93-f1fe960b9996")  # of no other program


class TurnState(StrEnum):
    """How far a turn came; samples of one that was given up do not count."""

    PLANNED = "planned"
    DONE = "done"
    FAILED = "failed"  # a candidate cannot be served
    GIVEN_UP = "given up"  # interrupted before its last sample; it is taken again


# Of the servers of a turn's candidates: kept from the turn before, started again where that costs
# no more than the runs since the last start, or started in any case.
Starts = Literal["kept", "afforded", "fresh"]


class TurnTime(Value):
    """What a machine's time was spent on for a turn; each second counts once."""

    builds_s: Amount
    fills_s: Amount
    runs_s: Amount


class Turn(Value):
    """Its id, and those of its samples, follow from what it is: taken twice, it is stored once."""

    campaign_id: str
    number: Count = Field(description="of its campaign's turns, in order")
    attempt: Count = Field(default=1, description="at this number")
    candidates: tuple[str, ...] = Field(description="in the order in which they begin")
    workload: Workload
    way: WayName = "in turn"
    machine: str = Field(default="", description="id of the one that takes it; empty: any")
    starts: Starts = Field(
        default="kept",
        exclude_if=lambda starts: starts == "kept",
        description="whether its candidates' servers are started for it",
    )
    state: TurnState = TurnState.PLANNED
    refused: dict[str, str] = Field(
        default_factory=dict, description="candidate that cannot be measured -> why"
    )
    spent: TurnTime | None = Field(
        default=None,
        description="of one of several machines, since the end of its turn before: with what it "
        "prepared meanwhile",
    )

    @property
    def id(self) -> str:
        return str(uuid.uuid5(NAMESPACE, f"{self.campaign_id}/{self.number}/{self.attempt}"))

    def sample_id(self, candidate: str) -> str:
        return str(uuid.uuid5(uuid.UUID(self.id), candidate))

    def ended(self, state: TurnState, refused: dict[str, str] | None = None) -> Turn:
        return self.model_copy(update={"state": state, "refused": refused or {}})


FindingKind = Literal[
    "commits",
    "validation",
    "profile",
    "claims",
    "watched",
    "alarm",
    "levels",
    "sizes",
    "endurance",
    "schemes",
    "compare",
    "timeline",
    "explain",
]


class Finding(Value):
    """A whole answer, such as of a search over commits: its report can be written again."""

    kind: FindingKind = "commits"
    found_at: str = Field(description="UTC, ISO 8601")
    title: str = Field(default="", description="what was asked, in one line")
    answer: str = Field(default="", description="in one line")
    campaigns: tuple[str, ...] = Field(default=(), description="ids of those that it rests on")
    value: dict[str, JsonValue] = Field(description="as that kind writes and reads it")

    @classmethod
    def now(
        cls,
        kind: FindingKind,
        value: Value,
        *,
        title: str,
        answer: str,
        campaigns: tuple[str, ...] = (),
    ) -> Finding:
        """``value`` is kept with its fields, and without what it computes of them."""
        return cls(
            kind=kind,
            found_at=datetime.now(UTC).isoformat(timespec="microseconds"),  # its id may rest on it
            title=title,
            answer=answer,
            campaigns=campaigns,
            value=value.model_dump(mode="json", exclude=set(type(value).model_computed_fields)),
        )

    @property
    def id(self) -> str:
        return finding_id(self.kind, *(self.campaigns or (self.found_at,)))


def finding_id(kind: FindingKind, *rests_on: str) -> str:
    """Return an id that follows from the finding's campaigns, or from when it was found."""
    return str(uuid.uuid5(NAMESPACE, "/".join((kind, *rests_on))))
