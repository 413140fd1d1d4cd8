"""Builds of one source in several layouts, measured in turns to see how much they differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    patches_of,
    surroundings_of,
    tree_of,
)
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.measure.metrics import find_metric
from dsharness.model import Sample
from dslab.campaign_loop import run_campaign
from dslab.lab_conditions import LabConditions
from dslab.laboratory import open_lab
from dslab.watcher import Watcher
from dsresults.store import Store
from dssearch.build_scatter import PILOT_RUNS, BuildScatter, build_scatter, runs_each
from dssearch.question import History
from dssearch.search_loop import Rounds


def to_see(step: float, names: Sequence[str], metric: str) -> Rounds:
    """As many rounds as the noise of the first ones asks for, to see a step of that log."""

    def missing(history: History) -> int:
        if history.rounds < PILOT_RUNS:
            return PILOT_RUNS - history.rounds
        pilot = [logs_of(history.of(name)[:PILOT_RUNS], metric) for name in names]
        return runs_each(pilot, step) - history.rounds

    return Rounds(missing=missing)


def logs_of(samples: Iterable[Sample], metric: str) -> list[float]:
    """How slow by that metric, as logs; runs that may not be used are left out."""
    decider = find_metric(metric)
    values = (decider.slowness(sample) for sample in samples if sample.valid)
    return [math.log(value) for value in values if value]


def by_build(samples: Iterable[Sample], names: Sequence[str], metric: str) -> list[list[float]]:
    """The logs of each build's runs."""
    groups: dict[str, list[Sample]] = {name: [] for name in names}
    for sample in samples:
        if sample.candidate_id in groups:
            groups[sample.candidate_id].append(sample)
    return [logs_of(groups[name], metric) for name in names]


def scatter_of_builds(
    ask: CommitsRequest,
    number: int,
    runs: int,
    *,
    engine: Engine,
    store: Store,
    watcher: Watcher,
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
    conditions = LabConditions.on(
        engine, matrix=ask.matrix, settings=common.settings, workloads=(ask.workload,),
        metric=ask.metric, duet=False,
    )  # fmt: skip
    with open_lab(
        conditions, supply, names, engine=engine, store=store, watcher=watcher
    ) as laboratory:
        for failure in laboratory.failures.values():
            raise failure
        question = ask.question(f"{repository.name}:layouts", names)
        campaign = run_campaign(
            question, ask.workload, search=Rounds.of(runs),
            lab=laboratory, store=store, listener=watcher, kind="measure",
        )  # fmt: skip
        return build_scatter(by_build(store.samples(campaign_id=campaign.id), names, ask.metric))
