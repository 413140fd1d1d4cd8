"""Two runs next to each other, and what makes their values hard to compare."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from dsharness.measure.metrics import COST, CPU, find_metric
from dsharness.model import Campaign, Sample, Value
from dsharness.model.workload import WorkloadBase
from dsresults.compare.candidate_history import MetricSpread, spreads
from dsresults.number_text import figure, significant

CLASS = ("architecture", "cpu_model", "cpu_count")  # of a machine


class CandidatePair(Value):
    """One candidate in both runs, by each metric that both have."""

    candidate: str
    first: tuple[MetricSpread, ...]
    second: tuple[MetricSpread, ...]

    def of(self, metric: str) -> tuple[MetricSpread | None, MetricSpread | None]:
        sides = (self.first, self.second)
        before, after = (next((m for m in side if m.name == metric), None) for side in sides)
        return before, after


class RunPair(Value):
    """Both runs."""

    runs: tuple[str, str]
    metric: str
    answers: tuple[str, str]
    warnings: tuple[str, ...]
    candidates: tuple[CandidatePair, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]


Run = tuple[Campaign, Sequence[Sample]]


def run_pair(first: Run, second: Run) -> RunPair:
    """Pure."""
    grouped = [_grouped(samples) for _, samples in (first, second)]
    common = [name for name in grouped[0] if name in grouped[1]]
    return RunPair(
        runs=(first[0].id, second[0].id),
        metric=first[0].metric,
        answers=(_answer(first[0]), _answer(second[0])),
        warnings=tuple(_warnings(first, second)),
        candidates=tuple(
            CandidatePair(
                candidate=name, first=spreads(grouped[0][name]), second=spreads(grouped[1][name])
            )
            for name in common
        ),
        only=(
            tuple(name for name in grouped[0] if name not in common),
            tuple(name for name in grouped[1] if name not in common),
        ),
    )


def _grouped(samples: Sequence[Sample]) -> Mapping[str, list[Sample]]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        if sample.valid:
            groups.setdefault(sample.candidate_id, []).append(sample)
    return groups


def _answer(campaign: Campaign) -> str:
    return campaign.boundary.summary if campaign.boundary else "the search has not ended"


def _warnings(first: Run, second: Run) -> Iterator[str]:
    """Each thing that differs, with both values."""
    sides = [_conditions(campaign, samples) for campaign, samples in (first, second)]
    for name in sides[0]:
        before, after = (side[name] for side in sides)
        if before != after:
            yield f"{name} differ: {before or 'not known'}, then {after or 'not known'}"
    machines = [{sample.machine.id for sample in samples} for _, samples in (first, second)]
    if machines[0] != machines[1] and sides[0]["machine classes"] == sides[1]["machine classes"]:
        classes = (", ".join(sorted(machine_ids)) or "none" for machine_ids in machines)
        yield f"other machines of the same class: {', then '.join(classes)}"


def _conditions(campaign: Campaign, samples: Sequence[Sample]) -> dict[str, str]:
    procedures = [sample.bench.procedure for sample in samples if sample.bench]
    return {
        "machine classes": _told(_class(sample) for sample in samples),
        "settings": campaign.settings_id,
        "what settings set": _told(procedure.settings[:12] for procedure in procedures),
        "workloads": _told(
            f"{s.workload_id}{_parameters(s.workload) if s.workload else ''}" for s in samples
        ),
        "procedures": _told(
            f"version {procedure.version}, {procedure.way}" for procedure in procedures
        ),
        "load generators": _told((procedure.loader or "")[:12] for procedure in procedures),
        "deciding metrics": campaign.metric,
        "images": _told(f"{s.candidate_id} {s.image_key[:12]}" for s in samples),
    }


def _class(sample: Sample) -> str:
    return ", ".join(str(sample.machine.facts.get(name, "?")) for name in CLASS)


def _parameters(workload: WorkloadBase) -> str:
    parameters = workload.model_dump(mode="json", exclude={"id", "title", "file"})
    return f" ({', '.join(f'{name} {value}' for name, value in parameters.items())})"


def _told(parts: Iterator[str]) -> str:
    return "; ".join(sorted(set(parts)))


def pair_text(pair: RunPair) -> Iterator[str]:
    """Everything for a screen; warnings first."""
    yield from (f"warning: {warning}" for warning in pair.warnings)
    for run, answer in zip(pair.runs, pair.answers, strict=True):
        yield f"{run}: {answer}"
    metrics = (pair.metric, CPU.name) if pair.metric == COST.name else (pair.metric,)
    for name in metrics:
        metric = find_metric(name)
        yield from ("", f"{metric.title}: median (lowest to highest), second over first")
        for candidate in pair.candidates:
            before, after = candidate.of(name)
            if before is None or after is None:
                continue
            sides = (
                f"{figure(metric, m.median)} ({figure(metric, m.low)} to {figure(metric, m.high)})"
                for m in (before, after)
            )
            medians = ", then ".join(sides)
            yield f"  {candidate.candidate}: {medians}; {_ratio(before, after)}"
    for run, names in zip(pair.runs, pair.only, strict=True):
        if names:
            yield f"only in {run}: {', '.join(names)}"


def _ratio(before: MetricSpread, after: MetricSpread) -> str:
    if before.median <= 0 or after.median <= 0:
        return "no ratio"
    ratio = after.median / before.median
    apart = before.high < after.low or after.high < before.low
    where = "their samples lie apart" if apart else "their samples overlap"
    return f"{significant(math.fabs(ratio))} times, {where}"
