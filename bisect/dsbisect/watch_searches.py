"""Where a watch's searches are done: here, one after the other, or by the workers of a database."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from dsbisect.commits.commit_range import Range
from dsbisect.commits.commits_request import CommitsRequest
from dsbisect.commits.commits_study import CommitsResult, run_commits
from dsbisect.commits.shared_commits import document_of
from dsbisect.search_options import SearchOptions
from dsbisect.shared_studies import shared_study
from dsharness.containers.engine import Engine
from dsharness.errors import InconclusiveError
from dsharness.model import RunState
from dslab.observer import Observer
from dsmany.attached import LOOK_S, RunTold, answered_runs, begin_run, detached, refuse_unanswered
from dsmany.fleet import MachineCount, campaign_id_of
from dsresults.store import Store

Outcome = Callable[[], CommitsResult | None]  # None: it is still searched for


class Searches(Protocol):
    """Who searches."""

    def begin(
        self,
        ask: CommitsRequest,
        scope: Range,
        options: SearchOptions,
        observer: Observer,
        told: Collection[str],
    ) -> Outcome:
        """Begin a search, or find it again; ``told``: campaigns whose answers are known."""
        ...

    def seconds(self, outcome: CommitsResult) -> float:
        """What a search took of its machines' time."""
        ...


@dataclass(frozen=True, kw_only=True)
class OwnSearches:
    """This machine searches, when it is asked for the outcome."""

    engine: Engine
    store: Store

    def begin(
        self,
        ask: CommitsRequest,
        scope: Range,
        options: SearchOptions,
        observer: Observer,
        told: Collection[str],
    ) -> Outcome:
        del told  # an answer that nobody was told of is found with the search itself
        return lambda: run_commits(
            ask, scope, engine=self.engine, store=self.store, observer=observer, options=options
        )

    def seconds(self, outcome: CommitsResult) -> float:
        return outcome.findings.seconds


@dataclass(frozen=True, kw_only=True)
class SharedSearches:
    """Workers search, each run as `bisect commits --on` asks for it; several at the same time."""

    store: Store
    machines: MachineCount
    class_name: str = ""
    refs: str = ""

    def begin(
        self,
        ask: CommitsRequest,
        scope: Range,
        options: SearchOptions,
        observer: Observer,
        told: Collection[str],
    ) -> Outcome:
        request = document_of(ask, scope, options, self.refs)
        ended_runs = answered_runs(self.store, request, class_name=self.class_name)
        untold = (run for run in ended_runs if campaign_id_of(run, 0) not in told)
        run = next(untold, None) or begin_run(
            self.store,
            request,
            class_name=self.class_name,
            machines=self.machines.at_most,
            at_least=self.machines.at_least,
        )
        run_told = RunTold(self.store, shared_study(run), observer)

        def outcome() -> CommitsResult | None:
            try:
                current = run_told.look(run.id)
                if current is None:
                    time.sleep(LOOK_S)
                    return None
            except KeyboardInterrupt as error:
                raise detached(run) from error
            if current.state is RunState.CANCELLED:  # it is not the watch that was told to stop
                raise InconclusiveError(f"run {run.id} was cancelled", hint="the next look asks it")
            refuse_unanswered(current)
            return CommitsResult.of_run(run_told.campaigns, self.store)

        return outcome

    def seconds(self, outcome: CommitsResult) -> float:
        """Machines do other things between its turns, such as the turns of other searches."""
        spent = outcome.findings.spent
        return spent.builds_s + spent.fills_s + spent.runs_s if spent else 0.0
