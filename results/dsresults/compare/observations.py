"""From samples to what was observed of each candidate. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from dsharness.model import Boundary, Campaign, Matrix, Outcome, Sample, Verdict, Workload
from dsresults.compare.cost_ratio import Ratio, compare_cost, compare_slowness, cost, grouped
from dsresults.compare.observed import Column, Estimate, Observed

NOT_PARAMETERS = frozenset({"turn"})


def column(
    matrix: Matrix, campaign: Campaign, line: tuple[str, ...], samples: Sequence[Sample]
) -> Column:
    """One campaign as a column: its samples are paired with those of its own first end."""
    groups = grouped(samples)
    verdicts = {v.candidate: v for v in campaign.boundary.verdicts} if campaign.boundary else {}
    reference = next((c for c in line if any(s.valid for s in groups.get(c, ()))), None)
    workload = next((w for w in matrix.workloads if w.id == campaign.workload_id), None)
    return Column(
        campaign_id=campaign.id,
        workload_id=campaign.workload_id,
        title=workload.title if workload else "",
        parameters=_parameters(workload, samples),
        started_at=campaign.started_at,
        finished_at=campaign.finished_at,
        boundary=campaign.boundary,
        reference=reference,
        server_cpus=_server_cpus(campaign, samples),
        observed=tuple(
            _observed(
                candidate,
                groups.get(candidate, ()),
                groups.get(reference or "", ()),
                verdicts.get(candidate),
                campaign.boundary,
            )
            for candidate in line
        ),
    )


def _observed(
    candidate: str,
    samples: Sequence[Sample],
    references: Sequence[Sample],
    verdict: Verdict | None,
    boundary: Boundary | None,
) -> Observed:
    valid = [sample for sample in samples if sample.valid]
    return Observed(
        candidate=candidate,
        valid=len(valid),
        invalid=len(samples) - len(valid),
        unmeasured=boundary.unmeasured.get(candidate) if boundary else None,
        rate_per_s=_median(valid, lambda sample: sample.rate_per_s),
        server_cpu_us_per_op=_median(valid, lambda sample: sample.server_cpu_us_per_op),
        client_cpu_us_per_op=_median(valid, lambda sample: sample.client_cpu_us_per_op),
        calibrated_cost=_median(valid, cost),
        cost_ratio=_judged(verdict) or _estimate(compare_cost(valid, references)),
        slowness_ratio=_estimate(compare_slowness(valid, references)),
        stored=next((sample.stored for sample in reversed(valid) if sample.stored), None),
        outcome=verdict.outcome if verdict else Outcome.INCONCLUSIVE,
        why=verdict.why if verdict else "the search has not judged it",
    )


def _judged(verdict: Verdict | None) -> Estimate | None:
    """The figures the verdict was given on, where there are any."""
    if verdict is None or verdict.ratio_to_first is None:
        return None
    return Estimate(value=verdict.ratio_to_first, interval=verdict.interval)


def _estimate(ratio: Ratio | None) -> Estimate | None:
    if ratio is None:
        return None
    return Estimate(value=ratio.value, interval=ratio.interval if ratio.pairs > 1 else None)


def _median(samples: Sequence[Sample], measure: Callable[[Sample], float | None]) -> float | None:
    values = [value for sample in samples if (value := measure(sample)) is not None]
    return statistics.median(values) if values else None


def _parameters(workload: Workload | None, samples: Sequence[Sample]) -> dict[str, object]:
    """As recorded with the samples, since the matrix may have changed since."""
    recorded: Mapping[str, object] = next((s.workload for s in samples if s.workload), {})
    known = workload.model_dump(mode="json") if workload else {}
    return {
        name: value for name, value in {**known, **recorded}.items() if name not in NOT_PARAMETERS
    }


def _server_cpus(campaign: Campaign, samples: Sequence[Sample]) -> int | None:
    for environment in (campaign.environment, *(sample.environment for sample in samples)):
        cpus = environment.get("server_cpus")
        if isinstance(cpus, list | tuple):
            return len(cpus)
    return None
