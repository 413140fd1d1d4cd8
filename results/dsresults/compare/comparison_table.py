"""What was observed, as values: candidates down, workloads across. A report is made of these."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from dsharness.measure.metrics import CLIENT_CPU, COST, CPU, RATE, Metric, find_metric
from dsharness.model import (
    DECIDER,
    NO_DIFFERENCE,
    Boundary,
    Facts,
    Outcome,
    Provenance,
    Published,
    Value,
    Workload,
)


class Estimate(Value):
    """A ratio; the interval is missing if there is only one pair."""

    value: float
    interval: tuple[float, float] | None = None

    def inverse(self) -> Estimate:
        turned = (1 / self.interval[1], 1 / self.interval[0]) if self.interval else None
        return Estimate(value=1 / self.value, interval=turned)


class Candidate(Value):
    """One row of a comparison: what it is and what is installed in it."""

    id: str
    system: str = ""
    product: str | None = Field(default=None, description="id of a product; None: not known")
    product_title: str = "the server"
    version: str | None = Field(default=None, description="of it, as the matrix says")
    suite: str = Field(default="", description="what brings it along, and its version")
    versions: dict[str, str] = Field(default_factory=dict, description="as installed")
    images: tuple[str, ...] = ()
    build: Provenance | None = None
    note: str = ""
    published: Published | None = None
    published_source: str = ""

    @property
    def product_version(self) -> str:
        """As measured; the matrix's word for it where no manifest is known."""
        return self.versions.get(self.product or "") or self.version or ""


class Observed(Value):
    """One candidate under one workload; medians of its valid samples."""

    candidate: str
    valid: int = 0
    invalid: int = 0
    unmeasured: str | None = None
    metrics: dict[str, float] = Field(default_factory=dict)
    ratios: dict[str, Estimate] = Field(
        default_factory=dict, description="by metric: how many times slower than the reference"
    )
    facts: Facts = Field(default_factory=dict)
    outcome: Outcome = Outcome.INCONCLUSIVE
    why: str = ""

    @property
    def cost_ratio(self) -> Estimate | None:
        return self.ratios.get(COST.name)

    @property
    def slowness_ratio(self) -> Estimate | None:
        return self.ratios.get(RATE.name)

    @property
    def rate_per_s(self) -> float | None:
        return self.metrics.get(RATE.name)

    @property
    def server_cpu_us_per_op(self) -> float | None:
        return self.metrics.get(CPU.name)

    @property
    def client_cpu_us_per_op(self) -> float | None:
        return self.metrics.get(CLIENT_CPU.name)

    @property
    def calibrated_cost(self) -> float | None:
        return self.metrics.get(COST.name)

    @property
    def busy_cpus(self) -> float | None:
        """How many CPUs the server kept busy while the load ran."""
        if self.rate_per_s is None or self.server_cpu_us_per_op is None:
            return None
        return self.rate_per_s * self.server_cpu_us_per_op / 1e6


class Column(Value):
    """One campaign: a workload over all candidates of a line, with its answer."""

    campaign_id: str
    workload_id: str
    title: str = ""
    workload: Workload | None = Field(default=None, description="as it was when measured")
    started_at: str
    finished_at: str | None = None
    boundary: Boundary | None = None
    reference: str | None = None
    server_cpus: int | None = None
    observed: tuple[Observed, ...] = ()

    def of(self, candidate: str) -> Observed | None:
        return next((one for one in self.observed if one.candidate == candidate), None)

    def observed_of(self, candidate: str) -> Observed:
        return self.of(candidate) or Observed(candidate=candidate)

    def only(self, candidates: tuple[str, ...]) -> Column:
        """The column without the other candidates."""
        kept = tuple(one for one in self.observed if one.candidate in candidates)
        return self.model_copy(update={"observed": kept})

    def verdict_word(self, observed: Observed) -> str:
        """The verdict for readers: without a difference, no candidate is fast or slow."""
        if not observed.valid:
            return "not measured"
        if self.boundary is not None and self.boundary.direction == "none":
            return NO_DIFFERENCE
        return observed.outcome.value

    @property
    def parameters(self) -> Mapping[str, object]:
        """Of the load, by name."""
        if self.workload is None:
            return {}
        known = self.workload.model_dump(mode="json", exclude={"id", "title"})
        return {"tool": self.workload.tool, "operation": self.workload.operation, **known}


class ComparisonTable(Value):
    """One line of a series under one settings, with every workload that was run on it."""

    series_id: str
    series_title: str = ""
    line: tuple[str, ...]
    settings_id: str
    settings_title: str = ""
    options: tuple[str, ...] = Field(default=(), description="that the settings set")
    metric: str = DECIDER
    candidates: tuple[Candidate, ...]
    columns: tuple[Column, ...]
    superseded: tuple[str, ...] = ()
    command: str = Field(default="", description="repeats the question; default: bisect rows")
    unseen: int = Field(default=0, description="candidates left out: never measured")

    @property
    def decider(self) -> Metric:
        return find_metric(self.metric)

    @property
    def value_shown(self) -> Metric | None:
        """The deciding metric, unless its values are shown for every comparison or mean nothing."""
        return None if self.decider in {COST, CPU, RATE} else self.decider

    def looked_at(self) -> ComparisonTable:
        """Without the candidates that the search did not need."""
        seen = {
            one.candidate
            for column in self.columns
            for one in column.observed
            if one.valid or one.invalid or one.unmeasured
        }
        kept = tuple(each for each in self.line if each in {*seen, self.line[0], self.line[-1]})
        return self.model_copy(
            update={
                "line": kept,
                "candidates": tuple(each for each in self.candidates if each.id in kept),
                "columns": tuple(column.only(kept) for column in self.columns),
                "unseen": len(self.line) - len(kept),
            }
        )

    def candidate(self, candidate_id: str) -> Candidate:
        known = (one for one in self.candidates if one.id == candidate_id)
        return next(known, Candidate(id=candidate_id))
