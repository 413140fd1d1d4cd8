"""A search over commits, from a repository to a proved culprit."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dsbisect.capacity import at_shares, without_shares
from dsbisect.commits.commit_candidates import Sources
from dsbisect.commits.commit_range import GOLDEN_S, NEXT_BUILD_S, Range, prior_of
from dsbisect.commits.commits_request import SHORT, CommitsRequest, surroundings_of
from dsbisect.commits.line_queue import Hunter, Line, hunt, hunt_parted
from dsbisect.commits.load_prior import (
    LEAST_CANDIDATES,
    hot_functions,
    suspects_text,
    weighed_by_functions,
)
from dsbisect.commits.proof import (
    Case,
    Prepare,
    SeveralBuilds,
    compare_ends,
    equal_ends,
    judged,
    prove,
)
from dsbisect.commits.source_lab import LabAnswers, by_build, ends_lab, source_supply, to_see
from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.search_options import SearchOptions
from dsbuilds.history.counterfactual import Change
from dsbuilds.history.culprit import Suspect, story
from dsbuilds.history.release_names import ReleaseNames
from dsharness.containers.engine import Engine
from dsharness.errors import DsbisectError
from dsharness.measure.metrics import COST, CPU, INSTRUCTIONS
from dsharness.measure.profiler import check_profiler
from dsharness.model import (
    Boundary,
    Campaign,
    CampaignKind,
    Finding,
    Image,
    Sample,
    Workload,
)
from dsharness.products import product
from dslab.campaign_loop import Answers, Together, asked_in_turn
from dslab.inspections import LabInspections
from dslab.laboratory import Laboratory
from dslab.observer import Observer
from dslab.step_profiles import profile_steps, seen_of_both
from dsresults.commits_result import CommitFindings, Comparison, Culprit, TimeSpent
from dsresults.profile_pair import ProfilePair, stored_profiles
from dsresults.store import Store
from dsresults.stored_value import value_of
from dssearch.build_scatter import BUILDS, PooledStep, needs_several, pooled_step
from dssearch.question import Search

OF_CPU_TIME = frozenset({COST.name, CPU.name, INSTRUCTIONS.name})
LOOKED_AT = 200  # candidates: beyond this their files are not listed


@dataclass(frozen=True, kw_only=True)
class CommitsResult:
    """The answer, and what a report shows with it."""

    findings: CommitFindings
    campaigns: tuple[Campaign, ...]
    samples: tuple[Sample, ...]
    images: dict[str, Image]
    profiles: tuple[ProfilePair, ...] = ()

    @classmethod
    def of_run(cls, campaigns: Sequence[Campaign], store: Store) -> CommitsResult:
        """The answer of a shared run that has asked these."""
        first, findings = campaigns[0].id, store.findings("commits")
        newest = next(finding for finding in reversed(findings) if first in finding.campaigns)
        return cls.kept(newest, store)

    @classmethod
    def kept(cls, finding: Finding, store: Store) -> CommitsResult:
        """The answer as it was found, from the store."""
        stored_campaigns = (store.campaign(campaign) for campaign in finding.campaigns)
        campaigns = tuple(campaign for campaign in stored_campaigns if campaign is not None)
        samples, images = store.measured_in(campaigns)
        return cls(
            findings=value_of(CommitFindings, finding),
            campaigns=campaigns,
            samples=tuple(samples),
            images=images,
            profiles=stored_profiles(store, finding.campaigns),
        )


def run_commits(
    ask: CommitsRequest,
    scope: Range,
    *,
    engine: Engine,
    store: Store,
    observer: Observer,
    options: SearchOptions | None = None,
    so_far: Callable[[CommitsResult], None] = lambda _: None,
) -> CommitsResult:
    """Search the range, follow merges, prove the culprit; with ``every`` follow further steps.

    ``so_far`` is told what is known each time that a culprit is proved and the search goes on.
    """
    if ask.profile:
        check_profiler()
    begun_s = time.monotonic()
    points, options = scope.points, options or SearchOptions()
    common = surroundings_of(ask, tuple(scope.trees[point] for point in points))
    supply = source_supply(engine, ask, common, scope.repository)
    (looped,) = without_shares((ask.workload,), ask.metric)
    with ends_lab(
        replace(ask, workload=looped), scope, common, supply, store=store, observer=observer
    ) as laboratory:
        closed = OpenCampaigns(
            settings=ask.settings.id,
            metric=ask.metric,
            kind="levels",
            lab=laboratory,
            store=store,
            observer=observer,
        )
        (workload,) = at_shares((ask.workload,), points, closed)
        ask = replace(ask, workload=workload)
        study = CommitsStudy(
            ask=ask,
            scope=scope,
            supply=supply,
            answers=LabAnswers(
                laboratory=laboratory, store=store, observer=observer, every=options.every
            ),
            prepare=laboratory.prepare_more,
            tell=lambda note: observer.preparing(points[1], note),
            store=store,
            options=replace(options, paired=laboratory.paired),
        )

        def result(
            findings: CommitFindings, profiles: tuple[ProfilePair, ...] = ()
        ) -> CommitsResult:
            samples = study.samples
            seconds = time.monotonic() - begun_s
            known = {
                "notes": (*findings.notes, *common.notes, *supply.remarks),
                "builds": len({build.key for build in supply.builds.values()}),
                "samples": len(samples),
                "seconds": round(seconds, 1),
                "spent": _time_spent(study, laboratory, begun_s, seconds),
            }
            findings = findings.model_copy(update=known)
            finding = findings.finding
            if study.campaigns and store.get(Finding, finding.id) is None:
                store.put(finding)
            return CommitsResult(
                findings=findings,
                campaigns=tuple(study.campaigns),
                samples=samples,
                images={name: golden.image for name, golden in laboratory.goldens.items()},
                profiles=profiles,
            )

        if not (ask.flat or scope.parted) and ask.metric in {
            COST.name,
            CPU.name,
            INSTRUCTIONS.name,
        }:
            study.hot = partial(_hot_functions, laboratory, scope, workload, observer)
        study.so_far = lambda findings: so_far(result(findings))
        findings = study.run()
        inspections = LabInspections(lab=laboratory)
        return result(
            findings,
            profile_steps(study.steps, (ask.workload,), inspections, store, observer)
            if ask.profile
            else (),
        )


def _hot_functions(
    laboratory: Laboratory, scope: Range, workload: Workload, observer: Observer
) -> dict[str, float]:
    """Look once at both ends; nothing where that cannot be, which is no reason to stop."""
    try:
        check_profiler()
    except DsbisectError as error:
        observer.note(f"what the load runs is not looked at: {error.message}")
        return {}
    look = LabInspections(lab=laboratory).profile
    ends, why = seen_of_both(scope.ends, workload, look, observer, "profiling")
    if why:
        observer.note(f"what the load runs is not known: {why}")
        return {}
    return hot_functions(*(ends[end] for end in scope.ends))


def _time_spent(
    study: CommitsStudy, laboratory: Laboratory, begun_s: float, seconds: float
) -> TimeSpent:
    each_s = laboratory.spent.each_s
    return TimeSpent(
        builds_s=round(each_s["builds"], 1),
        fills_s=round(each_s["fills"], 1),
        runs_s=round(each_s["runs"], 1),
        rest_s=round(seconds - sum(each_s.values()), 1),
        named_s=round((study.named_at or begun_s) - begun_s, 1),
        proved_s=None if study.proved_at is None else round(study.proved_at - begun_s, 1),
    )


@dataclass(kw_only=True)
class CommitsStudy:
    """One run: what is asked, one question after the other, and the results."""

    ask: CommitsRequest
    scope: Range
    supply: Sources
    answers: Answers
    prepare: Prepare
    tell: Callable[[str], None]
    store: Store
    options: SearchOptions
    together: Together = asked_in_turn
    so_far: Callable[[CommitFindings], None] = lambda _: (
        None
    )  # what is known before the search goes on
    hot: Callable[[], Mapping[str, float]] | None = None  # functions whose time differs
    now: Callable[[], float] = time.monotonic
    campaigns: list[Campaign] = field(default_factory=list)
    culprits: list[Culprit] = field(default_factory=list)
    _hot: Mapping[str, float] | None = None
    named_at: float | None = None  # when the search had its answer, or the first culprit
    proved_at: float | None = None  # the same for its proof

    def run(self) -> CommitFindings:
        scope = self.scope
        hunter = Hunter(
            search=self._boundary,
            sides=self._sides,
            blamed=self._blamed,
            every=self.options.every,
        )
        hunted = (
            hunt_parted(scope.points, scope.lines, hunter, self.tell)
            if scope.parted
            else hunt(scope.line, hunter)
        )
        self.named_at = self.named_at or self.now()
        boundary, ends = self._with_layouts(hunted.whole)
        return self._findings(boundary, ends, hunted.left, hunted.notes)

    def _findings(
        self,
        boundary: Boundary,
        ends: Comparison | None = None,
        left: Sequence[Line] = (),
        notes: Sequence[str] = (),
    ) -> CommitFindings:
        """What is known, with the culprits so far."""
        scope = self.scope
        return CommitFindings(
            repository=self.ask.repository,
            project=self._names.project,
            good_name=self._names.nearest(scope.good),
            bad_name=self._names.nearest(scope.bad),
            good=scope.good,
            bad=scope.bad,
            workload=self.ask.workload.id,
            settings=self.ask.settings.id,
            commits=scope.commits,
            equal=scope.equal,
            whole=boundary,
            ends_compared=ends,
            culprits=tuple(self.culprits),
            left=tuple((line[0], line[-1]) for line in left),
            notes=(*scope.notes, *notes),
            campaigns=tuple(campaign.id for campaign in self.campaigns),
        )

    def _blamed(self, boundary: Boundary, left: Sequence[Line]) -> None:
        """A culprit is proved, and told, before the next is searched."""
        self.named_at = self.named_at or self.now()
        self.culprits.append(self._culprit(boundary))
        if self.proved_at is None and self.culprits[-1].proof:
            self.proved_at = self.now()
        if left and self.options.every:
            whole = next((campaign.boundary for campaign in self.campaigns), None)
            self.so_far(self._findings(whole or boundary, left=left))

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All that it rests on."""
        groups = (self.store.samples(campaign_id=campaign.id) for campaign in self.campaigns)
        return tuple(sample for group in groups for sample in group)

    @property
    def steps(self) -> Sequence[Campaign]:
        """The campaign of each culprit; the first one where nobody is to blame."""
        blamed = [culprit.boundary for culprit in self.culprits]
        return [
            campaign for campaign in self.campaigns if campaign.boundary in blamed
        ] or self.campaigns[:1]

    @property
    def _names(self) -> ReleaseNames:
        repository = self.scope.repository
        facts = product(repository.product(self.scope.bad))
        return ReleaseNames(repository=repository, source=self.scope.source, product=facts)

    def _boundary(self, line: tuple[str, ...]) -> Boundary:
        for candidate in line:
            self._add(candidate)
        campaign = self._asked(line, self._search(line), "commits")
        self.campaigns.append(campaign)
        if campaign.boundary is None:
            raise AssertionError("a finished campaign has an answer")
        return campaign.boundary

    def _asked(self, line: tuple[str, ...], search: Search, kind: CampaignKind) -> Campaign:
        question = self.ask.question(self.scope.name, line)
        return self.answers(question, self.ask.workload, search, kind)

    def _compare(self, before: str, after: str) -> Boundary:
        return self._boundary((before, after))

    def _search(self, line: tuple[str, ...]) -> Search:
        ready = (name for name in line if len(line) <= LOOKED_AT and self.supply.ready(name))
        # A second step is looked for on a line of its own, when the first one is told.
        return replace(self.options, every=False).search(
            self.ask.workload,
            prepare_s=NEXT_BUILD_S + GOLDEN_S,
            ready=frozenset(ready),
            prior=self._prior(line),
        )

    def _prior(self, line: tuple[str, ...]) -> dict[str, float]:
        """None for what has no commits, such as a culprit on another tree, or where they parted."""
        apart = self.scope.parted and line == self.scope.points
        if self.ask.flat or apart or not all(name in self.scope.hashes for name in line):
            return {}
        weights = prior_of(self.scope.changed(line), self.scope.source, self.ask.prior)
        if self.hot is None or len(line) < LEAST_CANDIDATES or self._begun(line):
            return weights
        if self._hot is None:
            self._hot = self.hot()
        if not self._hot:
            return weights
        changed = self.scope.changed_functions(line)
        self.tell(suspects_text(changed, self._hot))
        return weighed_by_functions(weights, changed, self._hot)

    def _begun(self, line: tuple[str, ...]) -> bool:
        """Whether a search of it began before: what was suspected then is in its record."""
        return any(campaign.line == line for campaign in self.store.campaigns())

    def _sides(self, commit: str) -> tuple[tuple[str, ...], ...]:
        return () if self.ask.first_parent else self.scope.sides(commit)

    def _add(self, candidate: str) -> None:
        if candidate not in self.supply.specimens:
            self.supply.add(candidate, self.scope.tree(candidate))

    def _culprit(self, boundary: Boundary) -> Culprit:
        suspects = [
            commit
            for candidate in boundary.suspects
            for commit in self.scope.members(candidate, boundary.after)
        ]
        stories = tuple(story(self._names, commit) for commit in suspects)
        proof, backports = self.together(
            (partial(self._proof, boundary), partial(self._backports, boundary, stories))
        )
        return Culprit(
            boundary=boundary,
            suspects=stories,
            only_in_good=any(map(self.scope.only_in_good, boundary.suspects)),
            proof=proof,
            backports=backports,
        )

    def _backports(self, boundary: Boundary, stories: Sequence[Suspect]) -> tuple[Comparison, ...]:
        """Cherry-picks of a single culprit on other branches, each against its parent."""
        if not self.ask.backports or len(stories) != 1:
            return ()
        repository, asks = self.scope.repository, list[Callable[[], Comparison]]()
        for commit in stories[0].equivalents:
            parents = repository.commit(commit).parents
            if not parents:
                continue
            before, after = parents[0][:SHORT], commit[:SHORT]
            for name, digest in ((before, parents[0]), (after, commit)):
                self.scope.hashes[name] = digest
                self._add(name)
            title = f"its backport {after} against its parent"
            asks.append(
                partial(
                    judged,
                    title,
                    before,
                    after,
                    self.supply,
                    self._compare,
                    expected=boundary.direction,
                )
            )
        return self.together(asks)

    def _proof(self, boundary: Boundary) -> tuple[Comparison, ...]:
        if not self.ask.proof or boundary.after is None or boundary.before is None:
            return ()
        culprit, parent = boundary.after, boundary.before
        around = self.scope.around(culprit)
        ends = (around[0], around[-1])
        commits = tuple(self.scope.hashes[suspect] for suspect in boundary.suspects)
        change = Change(repository=self.scope.repository, commits=commits)
        case = Case(
            culprit=culprit,
            parent=parent,
            good=ends[0],
            bad=ends[1],
            direction=boundary.direction,
            trees={name: self.scope.tree(name) for name in (culprit, parent, *ends)},
            changed=lambda tree, reverse: change.ways(tree, reverse=reverse),
            first=(
                "the good end"
                if self.scope.hashes[ends[0]] == self.scope.good
                else "the common ancestor"
            ),
            last="the good end" if self.scope.only_in_good(culprit) else "the bad end",
        )
        several = self._several(boundary)
        return prove(case, self.supply, self._compare, self.prepare, several, self.together)

    def _with_layouts(self, boundary: Boundary) -> tuple[Boundary, Comparison | None]:
        """An answer that only other builds can decide, with several of both ends."""
        scope, size = self.scope, boundary.smallest_visible_pct
        if boundary.direction != "unknown" or boundary.shape != "builds" or self.culprits:
            return boundary, None
        if not self.ask.proof or scope.parted or not size:
            return boundary, None
        ends = (boundary.line[0], boundary.line[-1])
        trees = {name: scope.tree(name) for name in ends}
        several = self._several_of(math.log1p(size / 100), boundary.metric)
        compared = compare_ends(ends, trees, self.supply, several)
        return equal_ends(boundary, compared, self.options.level), compared

    def _several(self, boundary: Boundary) -> SeveralBuilds | None:
        """How to prove a step that one build of each side could mislead about."""
        step = abs(math.log(boundary.effect)) if boundary.effect else 0.0
        scatter_pct = self.ask.scatter_pct
        scatter = None if scatter_pct is None else math.log1p(scatter_pct / 100)
        if not step or not needs_several(step, scatter):
            return None
        sign = 1 if boundary.direction == "slower" else -1
        return self._several_of(sign * step, boundary.metric)

    def _several_of(self, step: float, metric: str) -> SeveralBuilds:
        """Builds to see a step of this log, above 0 for slower."""

        def measure(before: tuple[str, ...], after: tuple[str, ...]) -> PooledStep:
            names = tuple(name for pair in zip(before, after, strict=True) for name in pair)
            campaign = self._asked(names, to_see(abs(step), names, metric), "measure")
            samples = self.store.samples(campaign_id=campaign.id)
            first, second = (by_build(samples, side, metric) for side in (before, after))
            return pooled_step(first, second, self.options.level)

        return SeveralBuilds(number=BUILDS, step=step, metric=metric, measure=measure)
