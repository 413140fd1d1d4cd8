"""Sources in a lab: both ends of a range, a commit between them, and one in several layouts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from dsbisect.commits.commit_candidates import SourceSupply
from dsbisect.commits.commit_range import Range
from dsbisect.commits.commits_request import (
    SHORT,
    CommitsRequest,
    Surroundings,
    patches_of,
    repairs_of,
    surroundings_of,
    tree_of,
    untried,
)
from dsbisect.search_options import SearchOptions
from dsbuilds.history.relevant_files import server_key
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.measure.metrics import find_metric
from dsharness.model import Boundary, Campaign, CampaignKind, Sample, Workload
from dslab.campaign_loop import CampaignOrder
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory, open_lab, refuse_failed
from dslab.observer import Observer
from dsresults.commits_result import CommitFindings
from dsresults.store import Store
from dsresults.stored_value import value_of
from dssearch.build_scatter import PILOT_RUNS, BuildScatter, build_scatter, runs_each
from dssearch.planner import Rounds
from dssearch.question import History, Question, Search
from dssearch.repeated_failure import refuse_equal_ends, remedies_of


def source_supply(
    engine: Engine, ask: CommitsRequest, common: Surroundings, repository: Repository
) -> SourceSupply:
    """A supply that changes and repairs every source as the user asks; it has none yet."""
    return SourceSupply(
        engine=engine,
        matrix=ask.matrix,
        toolchains=common.toolchains,
        patches=patches_of(ask),
        repairs=repairs_of(ask, repository),
    )


@contextmanager
def source_lab(
    ask: CommitsRequest,
    common: Surroundings,
    supply: SourceSupply,
    candidates: Sequence[str],
    *,
    store: Store,
    observer: Observer,
    duet: bool = True,
) -> Iterator[Laboratory]:
    """A lab in which these sources of the supply are prepared, as far as they can be."""
    conditions = LabConditions.on(
        supply.engine,
        matrix=ask.matrix,
        settings=common.settings,
        workloads=(ask.workload,),
        metric=ask.metric,
        duet=duet,
        keep=ask.keep,
    )
    with open_lab(
        conditions,
        supply,
        candidates,
        engine=supply.engine,
        store=store,
        observer=observer,
        notes=common.notes,
    ) as laboratory:
        yield laboratory


@contextmanager
def ends_lab(
    ask: CommitsRequest,
    scope: Range,
    common: Surroundings,
    supply: SourceSupply,
    *,
    store: Store,
    observer: Observer,
) -> Iterator[Laboratory]:
    """A lab in which both ends are prepared; SystematicError where neither can be."""
    for point in scope.points:
        supply.add(point, scope.tree(point))
    with source_lab(
        ask, common, supply, scope.points, store=store, observer=observer
    ) as laboratory:
        for failure in tuple(laboratory.failures.values())[:1]:
            untried_toolchains = untried(ask, map(scope.tree, scope.points), supply.runtimes)
            remedies = remedies_of(
                failure, toolchains=untried_toolchains, repository=ask.repository
            )
            refuse_equal_ends(laboratory.failures, remedies)
        yield laboratory


@dataclass(frozen=True, kw_only=True)
class LabAnswers:
    """``Answers`` of this machine's lab; servers end with the question that they were for."""

    laboratory: Laboratory
    store: Store
    observer: Observer
    every: bool = False  # whether to go on where a search was satisfied with its first step

    def __call__(
        self, question: Question, workload: Workload, search: Search, kind: CampaignKind
    ) -> Campaign:
        order = CampaignOrder(
            question=question,
            workload=workload,
            search=search,
            lab=self.laboratory,
            store=self.store,
            kind=kind,
        )
        try:
            standing = self._standing(order) if search.looks else None
            return standing or order.run(self.observer)
        finally:
            for candidate in question.line:
                self.laboratory.retire(candidate)

    def _standing(self, order: CampaignOrder) -> Campaign | None:
        """The answer of a run that was stopped before all was told, or that left some to search."""
        if order.unfinished is not None:
            return None
        earlier = next(reversed(order.answers), None)
        if earlier is None or earlier.boundary is None:
            return None
        findings = (
            finding for finding in self.store.findings("commits") if earlier.id in finding.campaigns
        )
        if not all(self.every and value_of(CommitFindings, finding).left for finding in findings):
            return None
        self.observer.resumed(earlier, len(self.store.samples(campaign_id=earlier.id)))
        self.observer.answered(earlier.boundary)
        return earlier


def judge_commit(
    ask: CommitsRequest, revision: str, *, engine: Engine, store: Store, observer: Observer
) -> tuple[bool | None, str]:
    """True: changed like the bad reference; False: like the good one; None: unknown."""
    repository = Repository.open(ask.repository)
    names = [repository.revision(name) for name in (ask.good, revision, ask.bad)]
    trees = {name[:SHORT]: tree_of(repository, name) for name in names}
    good, candidate, bad = (name[:SHORT] for name in names)
    keys = {name: server_key(tree.listing()) for name, tree in trees.items()}
    for reference, changed in ((good, False), (bad, True)):
        if keys[candidate] == keys[reference]:
            return changed, f"{candidate} makes the same server as {reference}"
    common = surroundings_of(ask, (trees[good], trees[bad]))
    supply = source_supply(engine, ask, common, repository)
    for name, tree in trees.items():
        supply.add(name, tree, clean=ask.clean)
    question = ask.question(f"{repository.name}:judge", (good, candidate, bad))
    with source_lab(
        ask, common, supply, question.line, store=store, observer=observer
    ) as laboratory:
        options = SearchOptions(paired=laboratory.paired)
        order = CampaignOrder(
            question=question,
            workload=ask.workload,
            search=options.search(ask.workload, measure_all_up_to=3),
            lab=laboratory,
            store=store,
            kind="commits",
        )
        campaign = order.run(observer)
    assert campaign.boundary is not None  # noqa: S101 - a finished campaign has an answer
    return side_of(candidate, campaign.boundary)


def side_of(candidate: str, boundary: Boundary) -> tuple[bool | None, str]:
    """The side of the boundary on which a candidate was measured to be."""
    verdict = next(
        (
            candidate_verdict
            for candidate_verdict in boundary.verdicts
            if candidate_verdict.candidate == candidate
        ),
        None,
    )
    if verdict is None or not boundary.found or candidate in boundary.unmeasured:
        return None, boundary.unmeasured.get(candidate, boundary.summary)
    if boundary.after == candidate:
        return True, verdict.why
    if boundary.before == candidate:
        return False, verdict.why
    return None, verdict.why


def scatter_of_builds(
    ask: CommitsRequest, number: int, runs: int, *, engine: Engine, store: Store, observer: Observer
) -> BuildScatter:
    """Build the commit ``ask.good`` in so many layouts, and measure each so many times."""
    repository = Repository.open(ask.repository)
    revision = repository.revision(ask.good)
    tree = tree_of(repository, revision)
    common = surroundings_of(ask, (tree,))
    supply = source_supply(engine, ask, common, repository)
    names = supply.add_layouts(revision[:SHORT], tree, number)
    with source_lab(
        ask, common, supply, names, store=store, observer=observer, duet=False
    ) as laboratory:
        refuse_failed(laboratory)
        order = CampaignOrder(
            question=ask.question(f"{repository.name}:layouts", names),
            workload=ask.workload,
            search=Rounds.of(runs, keeps=False),
            lab=laboratory,
            store=store,
            kind="measure",
        )
        campaign = order.run(observer)
    return build_scatter(by_build(store.samples(campaign_id=campaign.id), names, ask.metric))


def to_see(step: float, names: Sequence[str], metric: str) -> Rounds:
    """As many rounds as the noise of the first ones asks for, to see a step of that log."""

    def missing(history: History) -> int:
        if history.rounds < PILOT_RUNS:
            return PILOT_RUNS - history.rounds
        pilot = [logs_of(history.of(name)[:PILOT_RUNS], metric) for name in names]
        return runs_each(pilot, step) - history.rounds

    return Rounds(missing=missing, keeps=False)


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
