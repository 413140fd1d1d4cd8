"""From samples to what was observed of each candidate. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from scipy.special import stdtrit

from dsharness.measure.metrics import COST, RATE, Metric, find_metric
from dsharness.model import Boundary, Campaign, Matrix, Outcome, Sample, Verdict
from dsresults.compare.comparison_table import Column, Estimate, Observed

CONFIDENCE = 0.99
USUAL = 0.15  # the log of a ratio strays by this much from pair to pair (docs/verdicts.md)
USUAL_PAIRS = 4  # and this counts as so many pairs more than one


def pairs(
    samples: Sequence[Sample], references: Sequence[Sample]
) -> tuple[tuple[Sample, Sample], ...]:
    """Valid samples of the same turn; a pair is never split over two machines."""
    by_turn = {(sample.turn, sample.machine.id): sample for sample in references if sample.valid}
    found = []
    for sample in samples:
        reference = by_turn.get((sample.turn, sample.machine.id))
        if sample.valid and reference is not None:
            found.append((sample, reference))
    return tuple(found)


def ratios(
    metric: Metric, groups: Mapping[str, Sequence[Sample]], references: Sequence[Sample]
) -> dict[str, Estimate]:
    """Of every candidate that shared a turn with the reference.

    The geometric mean of its pairs with a Student interval. A search takes few pairs of each
    candidate, so how far a pair strays is estimated from all of them together.
    """
    logs = {name: _logs(metric, samples, references) for name, samples in groups.items()}
    logs = {name: each for name, each in logs.items() if each}
    means = {name: statistics.fmean(each) for name, each in logs.items()}
    square = math.fsum((log - means[name]) ** 2 for name, each in logs.items() for log in each)
    freedom = USUAL_PAIRS + sum(len(each) - 1 for each in logs.values() if any(each))
    stray = math.sqrt((USUAL_PAIRS * USUAL**2 + square) / freedom)
    reach = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * stray
    return {
        name: _estimate(mean, reach / math.sqrt(len(logs[name]))) for name, mean in means.items()
    }


def _estimate(mean: float, half: float) -> Estimate:
    half = half if mean else 0.0  # the reference itself
    return Estimate(value=math.exp(mean), interval=(math.exp(mean - half), math.exp(mean + half)))


def _logs(metric: Metric, samples: Sequence[Sample], references: Sequence[Sample]) -> list[float]:
    couples = pairs(samples, references)
    values = ((metric.slowness(one), metric.slowness(other)) for one, other in couples)
    return [math.log(one / other) for one, other in values if one and other]


def column(
    matrix: Matrix, campaign: Campaign, line: tuple[str, ...], samples: Sequence[Sample]
) -> Column:
    """One campaign as a column: its samples are paired with those of its own first end."""
    groups = _grouped(samples)
    verdicts = {v.candidate: v for v in campaign.boundary.verdicts} if campaign.boundary else {}
    reference = next((c for c in line if any(s.valid for s in groups.get(c, ()))), None)
    ratios = _ratios(campaign.metric, groups, reference)
    workload = next((w for w in matrix.workloads if w.id == campaign.workload_id), None)
    return Column(
        campaign_id=campaign.id,
        workload_id=campaign.workload_id,
        title=workload.title if workload else "",
        workload=next((s.workload for s in samples if s.workload), workload),
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        boundary=campaign.boundary,
        reference=reference,
        server_cpus=_server_cpus(samples),
        observed=tuple(
            _observed(
                candidate,
                groups.get(candidate, ()),
                {metric: each[candidate] for metric, each in ratios.items() if candidate in each},
                verdicts.get(candidate),
                campaign,
            )
            for candidate in line
        ),
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
    """By the metric that decides, and by those that reasons are given from; then by candidate."""
    metrics = dict.fromkeys((find_metric(decider), COST, RATE))
    return {each.name: ratios(each, groups, groups.get(reference or "", ())) for each in metrics}


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
    """Of each metric that any of them has."""
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
