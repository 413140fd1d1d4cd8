"""Two rows, or two sources, under every load of a suite: in what the second one is slower.

Loads on the same content share a lab: its state is filled once, and pairs run next to each other.
Each load ends when it is told; further metrics are judged by the runs that it took.
"""

from __future__ import annotations

import shlex
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from dsbisect.compared_sources import PULL, ComparedSides
from dsbisect.comparison_question import Compare
from dsbisect.search_options import SearchOptions
from dsbisect.study_lab import Lab, LabPart, Runs, Scene
from dsharness.matrix import find_row
from dsharness.matrix.series_graph import chains
from dsharness.measure.metrics import METRICS, find_metric, refuse_unfit
from dsharness.model import DECIDER, Boundary, Matrix, Sample, Settings, SystemName, Workload
from dslab.candidates import system_of
from dsresults.compare.compared_loads import ComparedLoad, ComparedLoads, shown_by
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Belief, Budget, scatters
from dssearch.planner import history_of
from dssearch.question import Answer, History, Question

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
SOURCES = replace(Belief(), none=0.7, two=0.0, ramp=0.0, odd=0.0)
# All loads together name what is none in one of fifty comparisons at most.
LEVEL_OF_ALL = 0.98
SIDES = "sides"  # the look at what is compared


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A load with the metrics that it is judged by; the first one decides when it is told."""

    load: Workload
    metrics: tuple[str, ...]

    @property
    def key(self) -> tuple[object, ...]:
        """What is the same of all loads that one lab can take."""
        content = self.load.content.model_dump_json()  # its answers depend on it
        decider = find_metric(self.metrics[0])
        way = decider.name if _counted_apart(decider.name) else ""
        return self.load.tool, self.load.stopped, content, decider.of_start, decider.of_age, way


def _counted_apart(metric: str) -> bool:
    """Whether it takes runs of its own, under a tool that counts."""
    return find_metric(metric).exact or find_metric(metric).steady


def suite_of(study: Compare, scene: Scene) -> tuple[Judged, ...]:
    """What is asked; UsageError where a metric says nothing of its load."""
    systems: set[SystemName] = set()
    if not study.workload:
        made = study.made(scene)
        rows = () if made else study.names(scene)
        systems = {system_of(find_row(scene.matrix, row)) for row in rows}
        systems |= {made.system} if made else set()
    return judged_suite(study.workload, study.metric, systems, scene)


def judged_suite(
    names: Sequence[str], metric: str | None, systems: set[SystemName], scene: Scene
) -> tuple[Judged, ...]:
    """Return what is asked by these names, or of such systems where none is given."""
    suite = scene.matrix.defaults.suite
    if names:
        metrics = (metric,) if metric else ()
        chosen = [(name, metrics or suite.get(name, ())) for name in names]
    else:
        fit = {load.id for load in scene.fitting_workloads(systems)}
        chosen = [(name, of_load) for name, of_load in suite.items() if name in fit]
        if not chosen:  # no suite, or none for such servers
            chosen = [(load.named, ()) for load in scene.usual_workloads(systems)]
    judged = tuple(
        Judged(load=scene.workload(name), metrics=together)
        for name, of_load in chosen
        for together in _groups(of_load or (DECIDER,))
    )
    for row in judged:
        for judge in row.metrics:
            refuse_unfit(find_metric(judge), (row.load,))
    return judged


def _groups(metrics: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield metrics that the same runs tell."""
    if together := tuple(metric for metric in metrics if not _counted_apart(metric)):
        yield together
    yield from ((metric,) for metric in metrics if _counted_apart(metric))


def _sides(study: Compare, scene: Scene) -> ComparedSides:
    made = study.made(scene)
    if made:
        return made.sides
    first, second = study.names(scene)
    return ComparedSides(names=(first, second), titles=(first, second))


def _settings(study: Compare, scene: Scene) -> Settings:
    made = study.made(scene)
    return made.settings if made else scene.settings(study)


def labs_of(judged: Sequence[Judged]) -> Iterator[tuple[Judged, ...]]:
    """Yield what shares a lab."""
    groups: dict[tuple[object, ...], list[Judged]] = {}
    for row in judged:
        groups.setdefault(row.key, []).append(row)
    yield from map(tuple, groups.values())


def play_compare(study: Compare, lab: Lab) -> ComparedLoads:
    """Measure each load until it is told."""
    sides = lab.seen(SIDES, ComparedSides, lambda machine: _sides(study, machine.scene))
    suite = suite_of(study, lab.scene)
    return ComparePlay(study=study, lab=lab, sides=sides, suite=suite).answer()


@dataclass(frozen=True, kw_only=True)
class ComparePlay:
    """One comparison."""

    study: Compare
    lab: Lab
    sides: ComparedSides
    suite: tuple[Judged, ...]

    @property
    def looks(self) -> int:
        return sum(len(row.metrics) for row in self.suite)

    def answer(self) -> ComparedLoads:
        """Take one lab after the other, and in each one load after the other."""
        names, scene = self.sides.names, self.lab.scene
        groups = list(labs_of(self.suite))
        self.lab.announce([f"{name} for {group[0].load.id}" for group in groups for name in names])
        told: dict[Judged, ComparedLoad] = {}
        moments: list[str] = []
        for group in groups:
            with self.opened(group) as runs:
                if not told and (self.study.repository or set(names) <= set(runs.failures)):
                    runs.refuse_failed()  # it fails in every lab
                for row in group:
                    told[row], samples = self.told(runs, row)
                    moments += [sample.started_at for sample in samples]
        compared = ComparedLoads(
            first=self.sides.titles[0],
            second=self.sides.titles[1],
            notes=self.sides.notes,
            margin_pct=self.study.margin,
            loads=tuple(told[row] for row in self.suite),
            measured_from=min(moments, default=""),
            measured_until=max(moments, default=""),
        )
        worst = compared.worst
        names = self.sides.names
        command = next_command(self.study, scene.matrix, worst, names) if worst else ""
        return compared.model_copy(update={"next_command": command})

    def opened(self, group: Sequence[Judged]) -> AbstractContextManager[Runs]:
        """Prepare both for loads that share a lab."""
        part = LabPart(
            rows=self.sides.names,
            settings=_settings(self.study, self.lab.scene),
            metric=group[0].metrics[0],
        )
        return self.lab.rows(self.study, *(row.load for row in group), part=part)

    def told(self, runs: Runs, judged: Judged) -> tuple[ComparedLoad, list[Sample]]:
        """What is said of one load, and the runs that it rests on."""
        load, (decider, *others) = judged.load, judged.metrics
        compared = ComparedLoad(workload_id=load.named, title=load.title, metric=decider)
        if runs.failures:
            why = "; ".join(f"{row}: {reason}" for row, reason in runs.failures.items())
            return compared.model_copy(update={"why": why}), []
        question = Question(
            series_id=self.study.kind,
            line=self.sides.names,
            workload_id=load.id,
            settings_id=self.study.settings,
            metric=decider,
        )
        search = pair_search(self.study, load, self.looks, paired=runs.paired)
        (campaign,) = runs.searched([(question, load)], lambda *_: search, once=True)
        samples = self.lab.store.samples(campaign_id=campaign.id)
        turns = self.lab.store.turns(campaign_id=campaign.id)
        history = history_of(samples, turns, {}, {})
        boundaries = [
            _judged_by(replace(question, metric=metric), search, history) for metric in others
        ]
        before, after = (usable(samples, name) for name in self.sides.names)
        answer = {
            "boundary": campaign.boundary,
            "before": median(before, shown_by(decider)),
            "after": median(after, shown_by(decider)),
            "runs": min(len(before), len(after)),
            "also": tuple(boundary for boundary in boundaries if boundary and boundary.found),
        }
        return compared.model_copy(update=answer), samples


def pair_search(study: Compare, load: Workload, looks: int, *, paired: bool) -> Bayes:
    """Return how one load is told, of a suite with so many looks, each a load by a metric."""
    options = SearchOptions(
        max_runs=study.max_runs,
        max_hours=None if study.minutes is None else study.minutes / 60 / looks,
        smallest_pct=study.margin / 2,
        seen_pct=study.margin,
        paired=paired,
    )
    usual = options.search(load, belief=SOURCES if study.repository else INSTALLED)
    assert isinstance(usual, Bayes)  # noqa: S101 - that is what options make
    surely = 1 - (1 - LEVEL_OF_ALL) / looks
    certainty = replace(usual.certainty, real=surely)
    return replace(usual, certainty=certainty)


def next_command(
    study: Compare, matrix: Matrix, worst: ComparedLoad, names: tuple[str, str]
) -> str:
    """Return the command that finds where it began, or else what of it comes from what.

    A pull request's commits are ``names``: they begin where it parted.
    """
    words = ["--workload", worst.workload_id]
    if worst.metric != DECIDER:
        words += ["--metric", worst.metric]
    first, second = study.first, study.second or study.first
    if study.packages is not None:
        return ""
    if study.repository is not None:
        if study.patch is not None:  # there is nothing between
            return ""
        if PULL.fullmatch(second):
            first, second = names
        command = ["bisect", "commits", f"{first}..{second}", "--repo", study.repository]
        return shlex.join(["dsbisect", *command, *words])
    for series in matrix.series:
        for line in chains(series):
            if {first, second} <= set(line) and line.index(second) - line.index(first) > 1:
                command = ["bisect", "rows", "--series", series.id]
                command += ["--good", first, "--bad", second]
                return shlex.join(["dsbisect", *command, *words])
    return shlex.join(["dsbisect", "explain", first, second, *words[:2]])


def _judged_by(question: Question, search: Bayes, history: History) -> Boundary | None:
    """What another metric says of the same runs: no further one is taken for it."""
    step = replace(search, budget=Budget(runs=0)).next_step(question, history)
    return step.boundary if isinstance(step, Answer) else None


def usable(samples: Sequence[Sample], name: str) -> list[Sample]:
    """Return the runs of one of both that count."""
    return [sample for sample in samples if sample.valid and sample.candidate_id == name]


def median(samples: Sequence[Sample], metric: str) -> float | None:
    """Return that of the runs which this metric can use; None where it has none."""
    values = [
        value
        for sample in METRICS[metric].telling(samples)
        if (value := sample.value(metric)) is not None
    ]
    return statistics.median(values) if values else None
