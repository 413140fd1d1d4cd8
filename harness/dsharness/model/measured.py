"""What building and measuring leave behind: images and samples."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dsharness.model.built import Promise, Provenance
from dsharness.model.latencies import Latencies
from dsharness.model.value import Value
from dsharness.model.workload import Workload


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


Fact = str | int | bool | tuple[int, ...]  # about a machine


class Machine(Value):
    """What a sample was taken on; samples of one id may be paired."""

    id: str
    facts: dict[str, Fact] = Field(default_factory=dict)


WayName = Literal["duet", "in turn", "import", "callgrind", "strace", "from outside"]


class Procedure(Value):
    """How samples are taken; those of different procedures are not mixed."""

    version: int = Field(description="of the way of measuring")
    way: WayName = "in turn"
    settings: str = Field(default="", description="hash of what the settings set")
    loader: str | None = Field(default=None, description="key of the load generator's image")
    runtimes: dict[str, str] = Field(
        default_factory=dict, description="key of the image that each toolchain's builds run in"
    )


class Setup(Value):
    """What samples must share to be compared, and for a search to continue from them."""

    machine: Machine
    procedure: Procedure


class BenchFacts(Value):
    """What a sample was taken with, apart from its machine and its image."""

    procedure: Procedure
    golden: str = Field(default="", description="key of the golden state")
    notable: dict[str, str] = Field(
        default_factory=dict, description="versions of the product and its libraries"
    )
    cpu_meter: str = Field(default="", description="where the server's CPU time was read")


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
    attempt: int = Field(default=1, description="at that turn")
    started_at: str = Field(description="UTC, ISO 8601")
    session: str = Field(default="", description="one start of the lab: what it may all be off by")
    duration_s: float = Field(description="how long the load was at work")
    operations: int
    metrics: dict[str, Measurement] = Field(description="by name; what could not be read is absent")
    machine: Machine
    calibrator_us: float | None = Field(description="CPU time of one fixed piece of work")
    steal_pct: float
    gap_s: float = Field(default=0.0, description="the longest time the lab got no CPU")
    errors: int
    per_second: tuple[float, ...]
    latencies: dict[str, Latencies] = Field(
        default_factory=dict, description="by kind of operation, where the load reports them"
    )
    load_bound: bool = Field(
        default=False, description="the load had no CPU left: the rate is its own"
    )
    duet: bool = Field(default=False, description="measured at the same time as its turn's other")
    invalid: tuple[str, ...] = ()
    disturbed: tuple[str, ...] = ()
    facts: Facts = Field(default_factory=dict, description="what the system said of itself")
    workload: Workload | None = None
    bench: BenchFacts | None = None
    log: str = ""

    @property
    def valid(self) -> bool:
        return not self.invalid

    @property
    def scheduled(self) -> bool:
        """Whether its operations began by a schedule, whatever the server did."""
        return self.workload is not None and self.workload.rate is not None

    def value(self, metric: str) -> float | None:
        """None where it was not measured."""
        found = self.metrics.get(metric)
        return found.value if found else None
