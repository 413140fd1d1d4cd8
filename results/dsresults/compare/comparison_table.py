"""What was observed, as values: candidates down, workloads across. A report is made of these.

A column follows from a campaign's samples, by pure functions.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import CLIENT_CPU, COST, CPU, RATE, find_metric
from dsharness.model import (
    DECIDER,
    NO_DIFFERENCE,
    Boundary,
    Campaign,
    Facts,
    Matrix,
    Outcome,
    Provenance,
    Published,
    Sample,
    Value,
    Verdict,
    Workload,
)
from dsresults.compare import student
from dsresults.compare.self_checks import SelfCheck, self_checks

RELEASE = re.compile(r"(?:[0-9]+:)?([0-9]+(?:\.[0-9]+)+)")


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
        """The version as measured; the matrix's word for it where no manifest is known.

        A tree has none: its candidate's name says what it is.
        """
        version = self.versions.get(self.product or "") or self.version or ""
        return "" if self.is_tree(version) else version

    def is_tree(self, version: str) -> bool:
        return self.build is not None and version == self.build.tree_name

    @property
    def release(self) -> str:
        """The number of it that its makers gave; empty for a tree, which has none."""
        number = RELEASE.match(self.product_version)
        return number[1] if number else ""


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
    checks: tuple[SelfCheck, ...] = Field(default=(), description="of builds against themselves")

    def of(self, candidate: str) -> Observed | None:
        return next(
            (observed for observed in self.observed if observed.candidate == candidate), None
        )

    @property
    def named(self) -> str:
        """What ``--workload`` takes."""
        return self.workload.named if self.workload else self.workload_id

    @property
    def load_name(self) -> str:
        """The same without the folder of a file."""
        return self.named.rpartition("/")[2]

    def observed_of(self, candidate: str) -> Observed:
        return self.of(candidate) or Observed(candidate=candidate)

    def only(self, candidates: tuple[str, ...]) -> Column:
        """The column without the other candidates."""
        chosen = tuple(observed for observed in self.observed if observed.candidate in candidates)
        return self.model_copy(update={"observed": chosen})

    def verdict_word(self, observed: Observed) -> str:
        """The verdict for readers: without a difference, no candidate is fast or slow."""
        if not observed.valid:
            return "not measured"
        if self.boundary is not None and self.boundary.direction == "none":
            return NO_DIFFERENCE
        return observed.outcome.value

    def measured(self, *operations: str) -> bool:
        """Whether its load made one of these operations; True where its load is not known."""
        return self.workload is None or self.workload.operation in operations

    @property
    def parameters(self) -> Mapping[str, object]:
        """The load's parameters, by name."""
        if self.workload is None:
            return {}
        facts = {
            name: text
            for name in self.workload.model_dump()  # without what is as it is for most loads
            if name not in {"id", "title", "file"}
            and (text := self.workload.shown(name)) is not None
        }
        return {"tool": self.workload.tool, "operation": self.workload.operation, **facts}


class ComparisonTable(Value):
    """One line of a series under one settings, with every workload that was run on it."""

    series_id: str
    series_title: str = ""
    line: tuple[str, ...]
    settings_id: str
    settings_title: str = ""
    options: dict[str, str] = Field(default_factory=dict, description="that the settings set")
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
        """The table without the candidates that the search did not need."""
        differing = {
            observed.candidate
            for column in self.columns
            for observed in column.observed
            if observed.valid or observed.invalid or observed.unmeasured
        }
        names_kept = tuple(
            name for name in self.line if name in {*differing, self.line[0], self.line[-1]}
        )
        return self.model_copy(
            update={
                "line": names_kept,
                "candidates": tuple(
                    candidate for candidate in self.candidates if candidate.id in names_kept
                ),
                "columns": tuple(column.only(names_kept) for column in self.columns),
                "unseen": len(self.line) - len(names_kept),
            }
        )

    def candidate(self, candidate_id: str) -> Candidate:
        matches = (candidate for candidate in self.candidates if candidate.id == candidate_id)
        return next(matches, Candidate(id=candidate_id))

    def drawn(self, campaign_id: str, names: Sequence[str], most: int) -> set[str]:
        """Return the candidates of a chart; of many, the line's ends and both sides of its step."""
        if len(names) <= most:
            return set(names)
        answers = (column.boundary for column in self.columns if column.campaign_id == campaign_id)
        boundary = next((answer for answer in answers if answer), None)
        sides = (boundary.before, boundary.after) if boundary else ()
        return {names[0], names[-1], *filter(None, sides)}


CONFIDENCE = 0.95  # as the search has it
USUAL = 0.15  # the log of a ratio strays by this much from pair to pair (docs/verdicts.md)
USUAL_PAIRS = 4  # and this counts as so many pairs more than one


def pairs(
    samples: Sequence[Sample], references: Sequence[Sample]
) -> tuple[tuple[Sample, Sample], ...]:
    """Valid samples of the same turn; a pair is never split over two machines."""
    by_turn = {(sample.turn, sample.machine.id): sample for sample in references if sample.valid}
    couples = []
    for sample in samples:
        reference = by_turn.get((sample.turn, sample.machine.id))
        if sample.valid and reference is not None:
            couples.append((sample, reference))
    return tuple(couples)


def ratios(
    metric: Metric, groups: Mapping[str, Sequence[Sample]], references: Sequence[Sample]
) -> dict[str, Estimate]:
    """The ratio of every candidate that shared a turn with the reference.

    The geometric mean of its pairs with a Student interval. A search takes few pairs of each
    candidate, so how far a pair strays is estimated from all of them together.
    """
    logs = {name: _logs(metric, samples, references) for name, samples in groups.items()}
    logs = {name: values for name, values in logs.items() if values}
    means = {name: statistics.fmean(values) for name, values in logs.items()}
    square = math.fsum((log - means[name]) ** 2 for name, values in logs.items() for log in values)
    freedom = USUAL_PAIRS + sum(len(values) - 1 for values in logs.values() if any(values))
    stray = math.sqrt((USUAL_PAIRS * USUAL**2 + square) / freedom)
    half = student.reach(CONFIDENCE, freedom) * stray
    return {
        name: _estimate(mean, half / math.sqrt(len(logs[name]))) for name, mean in means.items()
    }


def _estimate(mean: float, half: float) -> Estimate:
    half = half if mean else 0.0  # the reference itself
    return Estimate(value=math.exp(mean), interval=(math.exp(mean - half), math.exp(mean + half)))


def _logs(metric: Metric, samples: Sequence[Sample], references: Sequence[Sample]) -> list[float]:
    couples = pairs(samples, references)
    values = (
        (metric.slowness(sample), metric.slowness(reference)) for sample, reference in couples
    )
    return [
        math.log(slowness / reference_slowness)
        for slowness, reference_slowness in values
        if slowness and reference_slowness
    ]


def column(
    matrix: Matrix, campaign: Campaign, line: tuple[str, ...], samples: Sequence[Sample]
) -> Column:
    """One campaign as a column: its samples are paired with those of its own first end."""
    groups = _grouped(samples)
    verdicts = {v.candidate: v for v in campaign.boundary.verdicts} if campaign.boundary else {}
    reference = next((c for c in line if any(s.valid for s in groups.get(c, ()))), None)
    ratios = _ratios(campaign.metric, groups, reference)
    workload_named = next((w for w in matrix.workloads if w.id == campaign.workload_id), None)
    workload = next((s.workload for s in samples if s.workload), workload_named)
    return Column(
        campaign_id=campaign.id,
        workload_id=campaign.workload_id,
        title=workload.title if workload else "",
        workload=workload,
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        boundary=campaign.boundary,
        reference=reference,
        server_cpus=_server_cpus(samples),
        observed=tuple(
            _observed(
                candidate,
                groups.get(candidate, ()),
                {
                    metric: metric_ratios[candidate]
                    for metric, metric_ratios in ratios.items()
                    if candidate in metric_ratios
                },
                verdicts.get(candidate),
                campaign,
            )
            for candidate in line
        ),
        checks=self_checks(find_metric(campaign.metric), groups),
    )


def _observed(
    candidate: str,
    samples: Sequence[Sample],
    ratios: dict[str, Estimate],
    verdict: Verdict | None,
    campaign: Campaign,
) -> Observed:
    valid = [sample for sample in samples if sample.valid]
    boundary = campaign.boundary
    return Observed(
        candidate=candidate,
        valid=len(valid),
        invalid=len(samples) - len(valid),
        unmeasured=boundary.unmeasured.get(candidate) if boundary else None,
        metrics=_medians(valid),
        ratios=ratios | _judged(boundary, verdict),
        facts=next((sample.facts for sample in reversed(valid) if sample.facts), {}),
        outcome=verdict.outcome if verdict else Outcome.INCONCLUSIVE,
        why=verdict.why if verdict else "not judged by the search",
    )


def _ratios(
    decider: str, groups: Mapping[str, Sequence[Sample]], reference: str | None
) -> Mapping[str, dict[str, Estimate]]:
    """Ratios by the metric that decides or that reasons are given from, then by candidate."""
    metrics = dict.fromkeys((find_metric(decider), COST, RATE))
    return {
        metric.name: ratios(metric, groups, groups.get(reference or "", ())) for metric in metrics
    }


def _judged(boundary: Boundary | None, verdict: Verdict | None) -> dict[str, Estimate]:
    """The figure behind the verdict, if there is one."""
    if boundary is None or verdict is None or verdict.ratio_to_first is None:
        return {}
    estimate = Estimate(value=verdict.ratio_to_first, interval=verdict.interval)
    return {boundary.metric: estimate}


def _grouped(samples: Iterable[Sample]) -> Mapping[str, tuple[Sample, ...]]:
    """Samples by candidate, in the order they came."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.candidate_id, []).append(sample)
    return {candidate: tuple(group) for candidate, group in groups.items()}


def _medians(samples: Sequence[Sample]) -> dict[str, float]:
    """The median of each metric that any of them has."""
    names = dict.fromkeys(name for sample in samples for name in sample.metrics)
    return {
        name: statistics.median(s.metrics[name].value for s in samples if name in s.metrics)
        for name in names
    }


def _server_cpus(samples: Sequence[Sample]) -> int | None:
    for sample in samples:
        cpus = sample.machine.facts.get("server_cpus")
        if isinstance(cpus, tuple):
            return len(cpus)
    return None
