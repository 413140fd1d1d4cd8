"""One pass of a standing watch: each branch's tip is compared with its reference, newest first.

The comparison is the search over commits itself. Its ends are measured fresh, next to each other,
so that a machine that drifts is no alarm; if they differ it goes on to the commit, and proves it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt

from dsbisect.commits.commit_range import Range, laid_range
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.commits.commits_study import CommitsResult, run_commits
from dsbisect.commits.commits_text import findings_data
from dsbisect.search_options import SearchOptions
from dsbisect.watch_stages import SearchStages
from dsbuilds.history.culprit import commit_page, equivalents
from dsbuilds.history.repository import Repository
from dsharness.containers.engine import Engine
from dsharness.errors import CandidateError, DsbisectError, StoreError
from dsharness.matrix import find_settings, find_workload
from dsharness.measure.metrics import find_metric
from dsharness.model import DECIDER, Matrix, Value
from dsharness.yaml_files.shape import read_checked
from dslab.watcher import Watcher
from dsresults.report.upstream_issue import upstream_issue
from dsresults.store import Store
from dsresults.watch.alarms import (
    AlarmEvent,
    AlarmState,
    alarms_of,
    searched,
    sighted,
    taken_back,
    unconfirmed,
)
from dsresults.watch.watched_series import (
    PackedTurns,
    WatchedSeries,
    WatchedTip,
    machine_shares,
    moment,
    next_reference,
    seen_already,
    tips_of,
    turns_of,
)


class WatchedBranch(Value):
    """A branch, and the commit that its tips are compared with at first."""

    name: str = Field(description="as git names it: main, origin/389-ds-base-2.2")
    since: str = Field(description="a tag or another revision whose speed is as it should be")


class WatchedLoad(Value):
    """A workload, and what is compared under it."""

    workload: str = Field(description="an id of the matrix, or a YAML file with one")
    metric: str = DECIDER


class WatchFile(Value):
    """watch.yaml: what is watched."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="a name for it")
    repository: str = Field(description="a git URL or a checkout")
    branches: tuple[WatchedBranch, ...] = Field(min_length=1)
    loads: tuple[WatchedLoad, ...] = Field(min_length=1)
    settings: str = "default"
    smallest_pct: PositiveFloat | None = Field(
        default=None, description="smaller differences don't matter"
    )
    max_runs: PositiveInt = Field(default=400, description="of one search with its proof")
    first_parent: bool = False


def read_watch(path: Path, matrix: Matrix) -> WatchFile:
    """MatrixError for anything in it that is not there."""
    found = read_checked(path, WatchFile, hint="docs/watch.md has an example")
    find_settings(matrix, found.settings)
    for load in found.loads:
        find_workload(matrix, load.workload)
        find_metric(load.metric)
    return found


@dataclass(frozen=True, kw_only=True)
class WatchPass:
    """All series of a watch, once."""

    asked: WatchFile
    matrix: Matrix
    engine: Engine
    store: Store
    watcher: Watcher
    keep: bool = False
    say: Callable[[str], None] = lambda _: None

    def run(self) -> tuple[WatchedTip, ...]:
        """The tips that were measured; what stands already is not measured again."""
        return tuple(filter(None, map(self._looked_at, self._newest_first())))

    def _newest_first(self) -> Iterator[tuple[WatchedBranch, WatchedLoad]]:
        repository = Repository.open(self.asked.repository)

        def age(branch: WatchedBranch) -> str:
            return repository.commit(repository.revision(branch.name)).date

        for branch in sorted(self.asked.branches, key=age, reverse=True):
            for load in self.asked.loads:
                yield branch, load

    def _looked_at(self, each: tuple[WatchedBranch, WatchedLoad]) -> WatchedTip | None:
        branch, load = each
        series = WatchedSeries(
            watch=self.asked.id, branch=branch.name, workload=load.workload, metric=load.metric
        )
        known = self.store.findings("watched")
        tips = [tip for tip in tips_of(known, self.asked.id) if tip.series == series]
        ask = self._ask(load, next_reference(tips, branch.since), branch.name)
        repository = Repository.open(self.asked.repository)
        good, bad = (repository.revision(name) for name in (ask.good, ask.bad))
        if good == bad or seen_already(tips, bad):
            self.say(f"{series}: {bad[:12]} is known")
            return None
        self.say(f"{series}: {bad[:12]} next to {good[:12]}")
        return self._compared(series, replace(ask, good=good, bad=bad), repository)

    def _ask(self, load: WatchedLoad, reference: str, tip: str) -> CommitsRequest:
        return CommitsRequest(
            matrix=self.matrix,
            workload=find_workload(self.matrix, load.workload),
            settings=find_settings(self.matrix, self.asked.settings),
            repository=self.asked.repository,
            good=reference,
            bad=tip,
            metric=load.metric,
            first_parent=self.asked.first_parent,
            keep=self.keep,
        )

    def _compared(
        self, series: WatchedSeries, ask: CommitsRequest, repository: Repository
    ) -> WatchedTip:
        begun, commit = time.monotonic(), repository.commit(ask.bad)
        scope = laid_range(ask)

        def tip(**facts: object) -> WatchedTip:
            return WatchedTip.model_validate(
                {
                    "series": series,
                    "at": moment(),
                    "reference": ask.good,
                    "tip": ask.bad,
                    "subject": commit.subject,
                    "committed": commit.date,
                    "seconds": round(time.monotonic() - begun, 1),
                    "commit_page": commit_page(repository, scope.source),
                    **facts,
                }
            )

        if len(scope.groups) == 1:
            found = tip(direction="none", summary="nothing that the server is made of has changed")
        else:
            try:
                outcome = self._searched(series, ask, scope)
            except CandidateError as error:
                found = tip(direction="impossible", summary=error.message.splitlines()[0])
            else:
                found = tip(**_facts(outcome))
                self._alarm(found, outcome, repository)
        self.store.add_finding(found.finding)
        self.say(f"{series}: {found.summary}")
        return found

    def _searched(self, series: WatchedSeries, ask: CommitsRequest, scope: Range) -> CommitsResult:
        stages = SearchStages(
            watcher=self.watcher,
            reference=scope.points[0],
            tip=scope.points[-1],
            began=lambda state, note: self._told(series, ask.bad, state, note),
        )
        options = SearchOptions(smallest_pct=self.asked.smallest_pct, max_runs=self.asked.max_runs)
        try:
            return run_commits(
                ask, scope, engine=self.engine, store=self.store, watcher=stages, options=options
            )
        except BaseException as error:
            if stages.stage:  # nobody searches now; the next look goes on
                why = error.message if isinstance(error, DsbisectError) else "interrupted"
                with suppress(StoreError):  # it would hide the real error
                    self._told(series, ask.bad, AlarmState.NEW, why.splitlines()[0])
            raise

    def _told(self, series: WatchedSeries, tip: str, state: AlarmState, note: str) -> None:
        """Keep it the moment it begins, unless it is known."""
        alarms = alarms_of(self.store.findings("alarm"))
        self._keep([searched(alarms, tip, series, state, note)])

    def _keep(self, events: Iterable[AlarmEvent | None]) -> None:
        for event in filter(None, events):
            self.store.add_finding(event.finding)
            self.say(f"alarm {event.alarm}: {event.state}: {event.note}")

    def _alarm(self, tip: WatchedTip, outcome: CommitsResult, repository: Repository) -> None:
        alarms = alarms_of(self.store.findings("alarm"))
        events: list[AlarmEvent | None] = [*taken_back(alarms, tip), *unconfirmed(alarms, tip)]
        if tip.direction == "slower":
            issue = upstream_issue(findings_data(self.matrix, outcome))
            same = equivalents(repository, tip.named) if tip.named else ()
            events.append(sighted(alarms, tip, same=same, title=issue.title, text=issue.body))
        self._keep(events)


def _facts(outcome: CommitsResult) -> dict[str, object]:
    """What a tip keeps of the search's answer."""
    findings = outcome.findings
    whole = findings.whole
    first = next(iter(findings.culprits), None)
    named = first.suspects[0].hash if first and len(first.suspects) == 1 else None
    said = [culprit.answer for culprit in findings.culprits] or [whole.summary]
    turns = turns_of(outcome.samples, findings.campaigns, whole.metric)
    return {
        "direction": whole.direction,
        "effect": whole.effect,
        "interval": whole.effect_interval,
        "confidence": whole.confidence,
        "smallest_pct": whole.smallest_visible_pct,
        "named": named,
        "proved": first.proved if first else None,
        "summary": "; ".join(said),
        "campaigns": findings.campaigns,
        "turns": PackedTurns.of(turns),
        "machines": machine_shares(turns, (sample.machine for sample in outcome.samples)),
    }
