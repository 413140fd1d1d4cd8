"""Two rows under every load of a suite: in what the second one is slower.

Loads that one server can answer share a lab: its state is filled once, and pairs run next to each
other. Each load ends when it is told; further metrics are judged by the runs that it took.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from dsbisect.comparison_question import Compare
from dsbisect.search_options import SearchOptions
from dsbisect.study_lab import Lab, LabPart, Runs, Scene
from dsharness.measure.metrics import METRICS, find_metric, refuse_unfit
from dsharness.model import DECIDER, Boundary, Campaign, Sample, Workload
from dsresults.compare.compared_loads import ComparedLoad, ComparedLoads, shown_by
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Belief, Budget, scatters
from dssearch.planner import history_of
from dssearch.question import Answer, Question, Search

# What is installed is compared: nothing else is said of what it was built from. That one load
# shows a difference has a chance of a few in ten.
INSTALLED = Belief(
    none=0.7,
    two=0.0,
    ramp=0.0,
    odd=0.0,
    smallest_effect=1.01,
    scatters=scatters((0.001, 1.0)),
    of_source=False,
)
# All loads together name what is none in one of fifty comparisons at most.
LEVEL_OF_ALL = 0.98
MOST_RUNS = 80  # of one load: two rows, forty times


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A load with the metrics that it is judged by; the first one decides when it is told."""

    load: Workload
    metrics: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same of all loads that one lab can take."""
        made = (getattr(self.load.content, name, None) for name in ("plugins", "imported"))
        decider = find_metric(self.metrics[0])
        way = decider.name if _counted_apart(decider.name) else ""
        return self.load.tool, self.load.stopped, *made, decider.of_start, decider.of_age, way


def _counted_apart(metric: str) -> bool:
    """Whether it takes runs of its own, under a tool that counts."""
    return find_metric(metric).exact or find_metric(metric).steady


def suite_of(study: Compare, scene: Scene) -> tuple[Judged, ...]:
    """What is asked; UsageError where a metric says nothing of its load."""
    suite = scene.matrix.defaults.suite
    if study.workload:
        metrics = (study.metric,) if study.metric else ()
        chosen = [(name, metrics or suite.get(name, ())) for name in study.workload]
    else:
        systems = {scene.matrix.row(row).system for row in study.names(scene)}
        fit = {load.id for load in scene.fitting_workloads(systems)}
        chosen = [(name, names) for name, names in suite.items() if name in fit]
    judged = tuple(
        Judged(load=scene.workload(name), metrics=metrics)
        for name, names in chosen
        for metrics in _groups(names or (DECIDER,))
    )
    for row in judged:
        for name in row.metrics:
            refuse_unfit(find_metric(name), (row.load,))
    return judged


def _groups(metrics: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield metrics that the same runs tell."""
    if together := tuple(metric for metric in metrics if not _counted_apart(metric)):
        yield together
    yield from ((metric,) for metric in metrics if _counted_apart(metric))


def labs_of(judged: Sequence[Judged]) -> Iterator[tuple[Judged, ...]]:
    """Yield what shares a lab."""
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for row in judged:
        groups.setdefault(row.key, []).append(row)
    yield from map(tuple, groups.values())


def play_compare(study: Compare, lab: Lab) -> ComparedLoads:
    """Measure each load until it is told."""
    names = study.names(lab.scene)
    suite = suite_of(study, lab.scene)
    level = 1 - (1 - LEVEL_OF_ALL) / sum(len(row.metrics) for row in suite)
    compared: dict[Judged, ComparedLoad] = {}
    lab.announce([f"{name} for {group[0].load.id}" for group in labs_of(suite) for name in names])
    samples: list[Sample] = []
    for group in labs_of(suite):
        part = LabPart(rows=names, settings=lab.scene.settings(study), metric=group[0].metrics[0])
        with lab.rows(study, *(row.load for row in group), part=part) as runs:
            for row in group:
                told, used = _told(study, lab, runs, row, level, len(suite))
                compared[row] = told
                samples += used
    begin_times = sorted(sample.started_at for sample in samples) or [""]
    loads = tuple(compared[row] for row in suite)
    return ComparedLoads(
        first=names[0],
        second=names[1],
        margin_pct=study.margin,
        loads=loads,
        measured_from=begin_times[0],
        measured_until=begin_times[-1],
    )


def _told(
    study: Compare, lab: Lab, runs: Runs, judged: Judged, level: float, loads: int
) -> tuple[ComparedLoad, list[Sample]]:
    names = study.names(lab.scene)
    load, (decider, *others) = judged.load, judged.metrics
    facts = {"workload_id": load.named, "title": load.title, "metric": decider}
    if runs.failures:
        why = "; ".join(f"{row}: {reason}" for row, reason in runs.failures.items())
        return ComparedLoad(**facts, why=why), []
    question = Question(
        series_id="compare",
        line=names,
        workload_id=load.id,
        settings_id=study.settings,
        metric=decider,
    )
    options = SearchOptions(
        max_runs=study.max_runs,
        max_hours=None if study.minutes is None else study.minutes / 60 / loads,
        smallest_pct=study.margin / 2,
        paired=runs.paired,
    )
    usual = options.search(load, belief=INSTALLED)
    assert isinstance(usual, Bayes)  # noqa: S101 - that is what options make
    certainty = replace(usual.certainty, real=level, seen_pct=study.margin)
    search = replace(usual, certainty=certainty)

    def search_for(workload: Workload, answered: Sequence[Campaign]) -> Search:
        del workload, answered
        return search

    (campaign,) = runs.searched([(question, load)], search_for, once=True)
    samples = lab.store.samples(campaign_id=campaign.id)
    boundaries = (_judged_by(metric, question, search, samples, lab, campaign) for metric in others)
    return (
        ComparedLoad(
            **facts,
            boundary=campaign.boundary,
            before=_median(samples, names[0], shown_by(decider)),
            after=_median(samples, names[1], shown_by(decider)),
            runs=min(sum(s.valid for s in samples if s.candidate_id == name) for name in names),
            also=tuple(boundary for boundary in boundaries if boundary and boundary.found),
        ),
        samples,
    )


def _judged_by(
    metric: str,
    question: Question,
    search: Bayes,
    samples: Sequence[Sample],
    lab: Lab,
    campaign: Campaign,
) -> Boundary | None:
    """What another metric says of the same runs: no further one is taken for it."""
    history = history_of(samples, lab.store.turns(campaign_id=campaign.id), {}, {})
    spent = replace(search, budget=Budget(runs=0))
    step = spent.next_step(replace(question, metric=metric), history)
    return step.boundary if isinstance(step, Answer) else None


def _median(samples: Sequence[Sample], row: str, metric: str) -> float | None:
    usable = METRICS[metric].telling(s for s in samples if s.valid and s.candidate_id == row)
    values = [value for sample in usable if (value := sample.value(metric)) is not None]
    return statistics.median(values) if values else None
