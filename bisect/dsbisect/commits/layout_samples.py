"""Builds of one source in several layouts, measured in turns to see how much they differ."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import SHORT, Ask, patches_of, surroundings_of, tree_of
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import open_lab
from dsbisect.lab.watcher import SamplesListener, Watcher
from dsbisect.search.build_scatter import PILOT_RUNS, BuildScatter, build_scatter, runs_each
from dsbisect.search.question import Question
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.measure.metrics import find_metric
from dsharness.model import Campaign, Sample, Setup, Workload
from dsresults.store import Store


class ReadyLab(Protocol):
    """What a laboratory offers to those who only want samples."""

    def ready(self, candidate: str) -> None: ...

    def samples(
        self, candidates: Sequence[str], workload: Workload, *, campaign_id: str, turn: int
    ) -> Iterator[Sample]: ...


@contextmanager
def without_search(
    store: Store, ask: Ask, series_id: str, line: tuple[str, ...], setup: Setup
) -> Iterator[Campaign]:
    """The campaign of a part of a run that is no search.

    If the run is stopped in it, it is left unfinished: the next run sees that, and goes on from
    the answers that there were.
    """
    campaign = Campaign(
        id=str(uuid.uuid4()),
        kind="measure",
        series_id=series_id,
        line=line,
        workload_id=ask.workload.id,
        settings_id=ask.settings.id,
        metric=ask.metric,
        started_at=_now(),
        fingerprint=content_key(setup.model_dump(mode="json")),
    )
    store.add_campaign(campaign)
    yield campaign
    question = Question(
        series_id=series_id,
        line=line,
        workload_id=ask.workload.id,
        settings_id=ask.settings.id,
        metric=ask.metric,
    )
    done = question.boundary(found=False, direction="unknown", summary="measured without a search")
    store.finish_campaign(campaign.id, done, _now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(kw_only=True)
class LayoutRuns:
    """Runs of several builds, one of each in a turn; every sample is stored."""

    ask: Ask
    campaign: Campaign
    lab: ReadyLab
    store: Store
    watcher: Watcher
    turns: int = 0
    logs: dict[str, list[float]] = field(default_factory=dict)  # of the decider, by build

    def measure(self, names: Sequence[str], runs: int) -> Mapping[str, list[float]]:
        """Until each has had so many runs; those that may not be used are left out."""
        metric = find_metric(self.ask.metric)
        for name in names:
            self.lab.ready(name)
        while self.turns < runs:
            first = self.turns % len(names)
            order = (*names[first:], *names[:first])
            taken = self.lab.samples(
                order, self.ask.workload, campaign_id=self.campaign.id, turn=self.turns
            )
            for sample in taken:
                self.store.add_sample(sample)
                self.watcher.sampled(sample)
                value = metric.slowness(sample) if sample.valid else None
                if value:
                    self.logs.setdefault(sample.candidate_id, []).append(math.log(value))
            self.turns += 1
        return {name: self.logs.get(name, []) for name in names}

    def to_see(self, step: float, names: Sequence[str]) -> Mapping[str, list[float]]:
        """As many runs of each as the noise asks for, to see a step of this log."""
        pilot = self.measure(names, PILOT_RUNS)
        return self.measure(names, runs_each(list(pilot.values()), step))


def scatter_of_builds(
    ask: Ask,
    number: int,
    runs: int,
    *,
    engine: Engine,
    store: Store,
    watcher: SamplesListener,
) -> BuildScatter:
    """Build the commit ``ask.good`` in so many layouts, and measure each so many times."""
    repository = Repository.open(ask.repository)
    revision = repository.revision(ask.good)
    tree = tree_of(repository, revision)
    common = surroundings_of(ask, (tree,))
    supply = SourceSupply(
        engine=engine, matrix=ask.matrix, toolchains=common.toolchains, patches=patches_of(ask)
    )
    names = supply.add_layouts(revision[:SHORT], tree, number)
    plan = LabPlan.on(
        engine, matrix=ask.matrix, settings=common.settings, workloads=(ask.workload,),
        metric=ask.metric, duet=False,
    )  # fmt: skip
    with open_lab(plan, supply, names, engine=engine, store=store, watcher=watcher) as laboratory:
        for failure in laboratory.failures.values():
            raise failure
        watcher.expect(number * runs)
        series = f"{repository.name}:layouts"
        with without_search(store, ask, series, names, laboratory.setup) as campaign:
            measured = LayoutRuns(
                ask=ask, campaign=campaign, lab=laboratory, store=store, watcher=watcher
            )
            groups = measured.measure(names, runs)
        return build_scatter(list(groups.values()))
