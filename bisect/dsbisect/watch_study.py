"""One pass of a standing watch: each branch's tip is compared with its reference, newest first.

The comparison is the search over commits itself. Its ends are measured fresh, next to each other,
so that a machine that drifts is no alarm; if they differ it goes on to the commit, and proves it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt
from pydantic.json_schema import SkipJsonSchema

from dsbisect.capacity import without_shares
from dsbisect.commits.commit_range import Range, laid_range
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.commits.commits_study import CommitsResult
from dsbisect.commits.commits_text import findings_data
from dsbisect.search_options import SearchOptions
from dsbisect.watch_searches import Outcome, Searches
from dsbisect.watch_stages import AlarmLog, SearchStages
from dsbuilds.history.culprit import commit_page, equivalents
from dsbuilds.history.repository import TRANSPORTS_TOLD, Repository, refused_transport
from dsharness.errors import CandidateError, DsbisectError, InconclusiveError, UsageError
from dsharness.matrix import find_row, find_settings, find_workload
from dsharness.measure.metrics import find_metric
from dsharness.model import DECIDER, Boundary, Matrix, Sample, Value, Workload
from dsharness.yaml_files.problems import FileProblemsError, KeyPath, Problem
from dsharness.yaml_files.shape import read_checked, refuse_problems
from dslab.candidates import check_loads
from dslab.lab_conditions import refuse_shares
from dslab.observer import Observer
from dsresults.report.upstream_issue import upstream_issue
from dsresults.store import Store
from dsresults.watch.watched_series import (
    PackedTurns,
    WatchedSeries,
    WatchedTip,
    machine_shares,
    moment,
    next_reference,
    seen_already,
    tips_of_series,
    turns_of,
)


class WatchedBranch(Value):
    """A branch, and the commit that its tips are compared with at first."""

    name: str = Field(description="as git names it: main, origin/stable-2.2")
    since: str = Field(description="a tag or another revision whose speed is as it should be")


class WatchedLoad(Value):
    """A workload, and what is compared under it."""

    workload: str = Field(
        description="an id of the matrix, or a YAML file with one, as seen from the watch's file"
    )
    metric: str = DECIDER


class WatchFile(Value):
    """watch.yaml: what is watched."""

    folder: SkipJsonSchema[Path] = Field(
        default=Path(), exclude=True, description="where it was read from; set by the reader"
    )
    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="a name for it")
    repository: str = Field(default="", description="a git URL or a checkout, with the branches")
    branches: tuple[WatchedBranch, ...] = ()
    rows: tuple[str, ...] = Field(
        default=(), description="rows of the matrix whose packages move, such as a rolling release"
    )
    loads: tuple[WatchedLoad, ...] = Field(min_length=1)
    settings: str = "default"
    smallest_pct: PositiveFloat | None = Field(
        default=None, description="smaller differences don't matter"
    )
    max_runs: PositiveInt = Field(default=400, description="of one search with its proof")
    first_parent: bool = False

    def series(self, branch: str, load: WatchedLoad) -> WatchedSeries:
        """What is seen of a branch, or a row, under one load."""
        return WatchedSeries(
            watch=self.id, branch=branch, workload=load.workload, metric=load.metric
        )

    def workload(self, load: WatchedLoad, matrix: Matrix) -> Workload:
        """What is run; MatrixError where it is not there."""
        return find_workload(matrix, load.workload, self.folder)

    @property
    def options(self) -> SearchOptions:
        """Of each search."""
        return SearchOptions(smallest_pct=self.smallest_pct, max_runs=self.max_runs)


HINT = "docs/watch.md has an example"


def read_watch(path: Path, matrix: Matrix) -> WatchFile:
    """What a file asks for; MatrixError with all in it that is wrong, or not there."""
    watch = read_checked(path, WatchFile, hint=HINT).model_copy(update={"folder": path.parent})
    problems = [*_contradictions(watch, matrix), *_unknown_names(watch, matrix)]
    problems += () if problems else _unfit_loads(watch, matrix)
    refuse_problems(path, problems, hint=HINT)
    return watch


def _contradictions(watch: WatchFile, matrix: Matrix) -> Iterator[Problem]:
    if not (watch.branches or watch.rows):
        allowed = "no `branches` and no `rows`: there is nothing to watch"
        yield Problem(path=(), value=None, allowed=allowed)
    if watch.branches and not watch.repository:
        allowed = "without a `repository`; name a git URL or a checkout"
        yield Problem(path=("branches",), value=None, allowed=allowed)
    if refused := refused_transport(watch.repository):
        allowed = f"no repository is fetched by {refused}; what works: {TRANSPORTS_TOLD}"
        yield Problem(path=("repository",), value=watch.repository, allowed=allowed)
    branches = {branch.name for branch in watch.branches}
    for key, names in (
        ("branches", [branch.name for branch in watch.branches]),
        ("rows", list(watch.rows)),
        ("loads", [f"{load.workload}, by {load.metric}" for load in watch.loads]),
    ):
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Problem(
                    path=(key, index), value=name, allowed="is there twice; once is enough"
                )
    built = {row.id for row in matrix.rows if row.build is not None}
    for index, name in enumerate(watch.rows):
        if name in built:
            allowed = "is built from a source, which does not move; name the row below it"
            yield Problem(path=("rows", index), value=name, allowed=allowed)
        if name in branches:
            allowed = (
                "a branch and a row, and nobody could tell them apart; watch one of them in a "
                "file of its own, with another `id`"
            )
            yield Problem(path=("rows", index), value=name, allowed=allowed)


def _unknown_names(watch: WatchFile, matrix: Matrix) -> Iterator[Problem]:
    """Find what is nowhere; what is wrong in a workload file is told of that file."""
    looks: list[tuple[KeyPath, str, Callable[[], object]]] = [
        (("settings",), watch.settings, partial(find_settings, matrix, watch.settings))
    ]
    for index, name in enumerate(watch.rows):
        looks.append((("rows", index), name, partial(find_row, matrix, name)))
    for index, load in enumerate(watch.loads):
        load_path = ("loads", index)
        looks += [
            ((*load_path, "workload"), load.workload, partial(watch.workload, load, matrix)),
            ((*load_path, "metric"), load.metric, partial(find_metric, load.metric)),
        ]
    for path, value, look in looks:
        try:
            look()
        except FileProblemsError:
            raise
        except DsbisectError as error:
            allowed = f"{error.message.rstrip('.')}; {error.hint}"
            yield Problem(path=path, value=value, allowed=allowed)


def _unfit_loads(watch: WatchFile, matrix: Matrix) -> Iterator[Problem]:
    """Find loads that the rows cannot take, or that their metric says nothing of."""
    settings = find_settings(matrix, watch.settings)
    rows = tuple(map(matrix.row, watch.rows))
    for index, load in enumerate(watch.loads):
        loads = (watch.workload(load, matrix),)
        try:
            if rows:
                refuse_shares(loads)
            check_loads(matrix, rows, without_shares(loads, load.metric), settings)
        except UsageError as error:
            allowed = f"{error.message}; {error.hint}"
            yield Problem(path=("loads", index, "workload"), value=load.workload, allowed=allowed)


def understood_watch(watch: WatchFile, matrix: Matrix) -> list[str]:
    """What is watched, for readers."""
    loads = [
        f"  under {load.workload} by {load.metric}: {watch.workload(load, matrix).title}"
        for load in watch.loads
    ]
    smallest = f"{watch.smallest_pct:g} %" if watch.smallest_pct else "as the noise allows"
    heading = (
        f"  {watch.id}: settings {watch.settings}; smallest difference: {smallest}; at most "
        f"{watch.max_runs} runs of a search"
    )
    return [
        heading,
        *(f"  branch {branch.name} since {branch.since}" for branch in watch.branches),
        *((f"    of {watch.repository}",) if watch.branches else ()),
        *(f"  row {name}" for name in watch.rows),
        *loads,
    ]


@dataclass(kw_only=True)
class BranchLook:
    """A series' tip next to its reference, while that is searched."""

    series: WatchedSeries
    ask: CommitsRequest
    scope: Range
    repository: Repository
    stages: SearchStages
    outcome: Outcome | None = None  # None: both make the same server

    def tip(self, **facts: object) -> WatchedTip:
        """What is kept of it."""
        commit = self.repository.commit(self.ask.bad)
        return WatchedTip.model_validate(
            {
                "series": self.series,
                "at": moment(),
                "reference": self.ask.good,
                "tip": self.ask.bad,
                "subject": commit.subject,
                "committed": commit.date,
                "commit_page": commit_page(self.repository, self.scope.source),
                **facts,
            }
        )


@dataclass(frozen=True, kw_only=True)
class WatchPass:
    """All series of a watch, once."""

    asked: WatchFile
    matrix: Matrix
    searches: Searches
    store: Store
    observer: Observer
    keep: bool = False
    say: Callable[[str], None] = lambda _: None

    def run(self) -> tuple[WatchedTip, ...]:
        """The tips that were measured; what stands already is not measured again.

        One without an answer stops no other; its error comes at the end.
        """
        waiting = deque(filter(None, map(self._begun, self._newest_first())))
        tips, failed = list[WatchedTip](), list[InconclusiveError]()
        while waiting:
            look = waiting.popleft()
            try:
                tip = self._answered(look)
            except InconclusiveError as error:
                self.say(f"{look.series}: {error.message}")
                failed.append(error)
            else:
                tips += [tip] if tip else []
                waiting.extend([] if tip else [look])
        for first in failed:
            raise first
        return tuple(tips)

    @property
    def _log(self) -> AlarmLog:
        return AlarmLog(store=self.store, say=self.say)

    def _newest_first(self) -> Iterator[tuple[WatchedBranch, WatchedLoad]]:
        if not self.asked.branches:
            return
        repository = Repository.open(self.asked.repository)

        def age(branch: WatchedBranch) -> str:
            return repository.commit(repository.revision(branch.name)).date

        for branch in sorted(self.asked.branches, key=age, reverse=True):
            for load in self.asked.loads:
                yield branch, load

    def _begun(self, pair: tuple[WatchedBranch, WatchedLoad]) -> BranchLook | None:
        branch, load = pair
        series = self.asked.series(branch.name, load)
        tips = tips_of_series(self.store.findings("watched"), series)
        ask = self._ask(load, next_reference(tips, branch.since), branch.name)
        repository = Repository.open(self.asked.repository)
        good, bad = (repository.revision(name) for name in (ask.good, ask.bad))
        if good == bad or seen_already(tips, bad):
            self.say(f"{series}: {bad[:12]} is known")
            return None
        self.say(f"{series}: {bad[:12]} next to {good[:12]}")
        ask = replace(ask, good=good, bad=bad)
        scope = laid_range(ask)
        stages = self._log.stages(self.observer, series, bad, scope.points)
        look = BranchLook(series=series, ask=ask, scope=scope, repository=repository, stages=stages)
        if len(scope.groups) > 1:
            known_campaigns = [campaign for tip in tips for campaign in tip.campaigns]
            look.outcome = self.searches.begin(
                ask, scope, self.asked.options, stages, known_campaigns
            )
        return look

    def _ask(self, load: WatchedLoad, reference: str, tip: str) -> CommitsRequest:
        return CommitsRequest(
            matrix=self.matrix,
            workload=self.asked.workload(load, self.matrix),
            settings=find_settings(self.matrix, self.asked.settings),
            repository=self.asked.repository,
            good=reference,
            bad=tip,
            metric=load.metric,
            first_parent=self.asked.first_parent,
            keep=self.keep,
        )

    def _answered(self, look: BranchLook) -> WatchedTip | None:
        """The tip with its answer; None while that is searched."""
        if look.outcome is None:
            reason = "nothing that the server is made of has changed"
            tip = look.tip(direction="none", summary=reason)
        else:
            begun_s = time.monotonic()
            try:
                outcome = self._log.searched(look.series, look.ask.bad, look.stages, look.outcome)
            except CandidateError as error:
                reason, seconds = error.message.splitlines()[0], time.monotonic() - begun_s
                tip = look.tip(direction="impossible", summary=reason, seconds=round(seconds, 1))
            else:
                if outcome is None:
                    return None
                seconds = self.searches.seconds(outcome)
                tip = look.tip(**_facts(outcome), seconds=round(seconds, 1))
                self._alarm(tip, outcome, look.repository)
        return self._log.told(tip)

    def _alarm(self, tip: WatchedTip, outcome: CommitsResult, repository: Repository) -> None:
        same = equivalents(repository, tip.named) if tip.named else ()
        self._log.seen(tip, lambda: upstream_issue(findings_data(self.matrix, outcome)), same)


def _facts(outcome: CommitsResult) -> dict[str, object]:
    """What a tip keeps of the search's answer."""
    findings = outcome.findings
    boundary = findings.whole
    first = next(iter(findings.culprits), None)
    named_commit = first.suspects[0].hash if first and len(first.suspects) == 1 else None
    sentences = [culprit.answer for culprit in findings.culprits] or [boundary.summary]
    return {
        **answer_facts(boundary, outcome.samples, findings.campaigns),
        "named": named_commit,
        "proved": first.proved if first else None,
        "summary": "; ".join(sentences),
    }


def answer_facts(
    boundary: Boundary, samples: Sequence[Sample], campaigns: tuple[str, ...]
) -> dict[str, object]:
    """What a tip keeps of any answer."""
    turns = turns_of(samples, campaigns, boundary.metric)
    return {
        "direction": boundary.direction,
        "effect": boundary.effect,
        "interval": boundary.effect_interval,
        "confidence": boundary.confidence,
        "smallest_pct": boundary.smallest_visible_pct,
        "summary": boundary.summary,
        "campaigns": campaigns,
        "turns": PackedTurns.of(turns),
        "machines": machine_shares(turns, (sample.machine for sample in samples)),
    }
