"""All that was ever measured of one candidate: by workload, settings, image and machine."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from dsharness.measure.metrics import METRICS
from dsharness.model import Campaign, Sample, Value
from dsresults.number_text import counted, figure


class MetricSpread(Value):
    """One metric over the valid samples of a group."""

    name: str
    unit: str
    median: float
    low: float
    high: float
    samples: int

    @property
    def text(self) -> str:
        metric = METRICS.get(self.name)
        if metric is None:  # of a later version
            return f"{self.name} {self.median:g} {self.unit}"
        low, high = figure(metric, self.low), figure(metric, self.high)
        return f"{metric.heading} {figure(metric, self.median)} ({low} to {high})"


class MeasuredGroup(Value):
    """Samples that share all that a value depends on."""

    workload_id: str
    settings_id: str
    image_key: str
    machine: str
    cpu: str = ""
    versions: dict[str, str]
    campaigns: tuple[str, ...]
    first: str
    last: str
    valid: int
    invalid: dict[str, int]
    metrics: tuple[MetricSpread, ...]


class CandidateHistory(Value):
    """A candidate's groups, and the campaigns that could not measure it."""

    candidate: str
    groups: tuple[MeasuredGroup, ...]
    refused: dict[str, str]

    @property
    def empty(self) -> bool:
        return not self.groups and not self.refused


def candidate_history(
    candidate: str, samples: Iterable[Sample], campaigns: Iterable[Campaign]
) -> CandidateHistory:
    """Group its samples, in the order in which they were first taken."""
    groups: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples:
        place = (sample.workload_id, sample.settings_id, sample.image_key, sample.machine.id)
        groups.setdefault(place, []).append(sample)
    refused = {
        campaign.id: why
        for campaign in campaigns
        if campaign.boundary and (why := campaign.boundary.unmeasured.get(candidate))
    }
    return CandidateHistory(
        candidate=candidate, groups=tuple(map(_group, groups.values())), refused=refused
    )


def spreads(samples: Sequence[Sample]) -> tuple[MetricSpread, ...]:
    """Each metric of the valid ones."""
    values_by_metric: dict[tuple[str, str], list[float]] = {}
    for sample in samples:
        for name, measurement in sample.metrics.items() if sample.valid else ():
            values_by_metric.setdefault((name, measurement.unit), []).append(measurement.value)
    return tuple(
        MetricSpread(
            name=name,
            unit=unit,
            median=statistics.median(values),
            low=min(values),
            high=max(values),
            samples=len(values),
        )
        for (name, unit), values in values_by_metric.items()
    )


def _group(samples: Sequence[Sample]) -> MeasuredGroup:
    first, last = samples[0], samples[-1]
    notable = (s.bench.notable for s in samples if s.bench and s.bench.notable)
    why = [reason for sample in samples for reason in sample.invalid]
    return MeasuredGroup(
        workload_id=first.workload_id,
        settings_id=first.settings_id,
        image_key=first.image_key,
        machine=first.machine.id,
        cpu=str(first.machine.facts.get("cpu_model", "")),
        versions=next(notable, {}),
        campaigns=tuple(dict.fromkeys(sample.campaign_id for sample in samples)),
        first=first.started_at,
        last=last.started_at,
        valid=sum(sample.valid for sample in samples),
        invalid={reason: why.count(reason) for reason in dict.fromkeys(why)},
        metrics=spreads(samples),
    )


def history_text(history: CandidateHistory) -> Iterator[str]:
    """Everything for a screen."""
    yield history.candidate
    for group in history.groups:
        yield ""
        place = f"{group.machine}{f', {group.cpu}' if group.cpu else ''}"
        yield f"{group.workload_id}, settings {group.settings_id}, on {place}"
        days = " to ".join(dict.fromkeys((group.first[:10], group.last[:10])))
        versions = ", ".join(f"{noun} {version}" for noun, version in group.versions.items())
        valid = counted(group.valid, "valid sample")
        yield f"  {valid}, {days}{f'; {versions}' if versions else ''}"
        yield from (f"  {metric.text}" for metric in group.metrics)
        yield from (f"  not valid, {count} times: {why}" for why, count in group.invalid.items())
        yield f"  image {group.image_key}; campaigns {', '.join(group.campaigns)}"
    for campaign, why in history.refused.items():
        yield from ("", f"not measured by campaign {campaign}: {why}")
