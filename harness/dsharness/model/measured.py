"""What building and measuring leave behind: images, samples, verdicts, boundaries."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from dsharness.model.built import Promise, Provenance
from dsharness.model.value import Value


class Outcome(StrEnum):
    """An infrastructure failure is never FAST or SLOW."""

    FAST = "fast"
    SLOW = "slow"
    INCONCLUSIVE = "inconclusive"


class Image(Value):
    """A built container image, named by the content of what went into it."""

    candidate_id: str
    reference: str
    key: str
    product: str | None = Field(default=None, description="id of the product that it serves")
    packages: dict[str, str] = Field(
        default_factory=dict, description="manifest: every installed package and its version"
    )
    build: Provenance | None = Field(default=None, description="where what was built comes from")
    promise: Promise = Field(default=Promise(), description="of the edits of its build")


# What a system says of itself, e.g. its version or how it stores a password.
Facts = dict[str, str | int]


class Measurement(Value):
    """One metric of one sample; ``dsharness.measure.metrics`` says what each name means."""

    value: float
    unit: str


class Machine(Value):
    """What a sample was taken on; samples of one id may be paired."""

    id: str
    facts: dict[str, str | int | bool | tuple[int, ...]] = Field(default_factory=dict)


class Sample(Value):
    """One measured run. ``invalid`` lists why it may not be used; empty means valid.

    If ``disturbed`` says that something outside spoiled it, it counts against no candidate.
    """

    id: str
    campaign_id: str
    candidate_id: str
    settings_id: str
    workload_id: str
    image_key: str
    turn: int = Field(description="candidates of one turn were measured next to each other")
    started_at: str = Field(description="UTC, ISO 8601")
    duration_s: float = Field(description="how long the load was at work")
    operations: int
    metrics: dict[str, Measurement] = Field(description="by name; what could not be read is absent")
    machine: Machine
    calibrator_us: float | None = Field(description="CPU time of one fixed piece of work")
    steal_pct: float
    gap_s: float = Field(default=0.0, description="the longest time the lab got no CPU")
    errors: int
    per_second: tuple[float, ...]
    load_bound: bool = Field(
        default=False, description="the load had no CPU left: the rate is its own"
    )
    duet: bool = Field(default=False, description="measured at the same time as its turn's other")
    invalid: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    facts: Facts = Field(default_factory=dict, description="what the system said of itself")
    workload: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Any] = Field(default_factory=dict)
    log: str = ""

    @property
    def valid(self) -> bool:
        return not self.invalid

    def value(self, metric: str) -> float | None:
        """None where it was not measured."""
        found = self.metrics.get(metric)
        return found.value if found else None


class Verdict(Value):
    """What one candidate turned out to be, with its evidence."""

    candidate: str
    outcome: Outcome
    why: str
    ratio_to_first: float | None = Field(
        default=None, description="by the deciding metric, over the first end; above 1 is slower"
    )
    interval: tuple[float, float] | None = None
    samples: tuple[str, ...] = Field(default=(), description="sample ids")


class CostStep(Value):
    """A difference between two neighbours in a line."""

    before: str
    after: str
    ratio: float
    interval: tuple[float, float]


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
    effect: float | None = None
    effect_interval: tuple[float, float] | None = None
    effect_level: float = Field(default=0.99, description="of that interval")
    smallest_visible_pct: float | None = None
    summary: str
    unmeasured: dict[str, str] = Field(default_factory=dict, description="candidate -> why")
    steps: tuple[CostStep, ...] = Field(
        default=(), description="every difference between neighbours, the boundary's among them"
    )
    verdicts: tuple[Verdict, ...] = ()
    confidence: float | None = Field(
        default=None, description="chance that what is said is so; None from the plain search"
    )
    chances: dict[str, float] = Field(default_factory=dict, description="of each suspect")
    also: tuple[str, ...] = Field(default=(), description="suspects of a second step")
    shape: Literal["step", "ramp", "drift", "ends", "builds"] | None = Field(
        default=None,
        description='what a difference looks like: of a "ramp", `suspects` is the range; "ends": '
        'the ends agree, and nothing is said of what lies between them; "builds": no more than '
        "builds of one source differ by",
    )
    witness: Literal["agrees", "cannot tell", "contradicts"] | None = Field(
        default=None, description="what its witness says of a step that the deciding metric shows"
    )


class Campaign(Value):
    """One search: what was asked, and in the end what was answered."""

    id: str
    kind: Literal["rows", "measure", "commits"] = "rows"
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
    environment: dict[str, Any] = Field(default_factory=dict)
