"""`--on` and `machines attach`: a run of several machines is shown until it has its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dsbisect.cli.common_options import MACHINES, refuse_database
from dsbisect.cli.told_answers import tell_commits, tell_findings, tell_kept

if TYPE_CHECKING:
    from pydantic import JsonValue

    from dsbisect.cli.bisect_commits import CommitsCircumstances
    from dsbisect.cli.study_command import Circumstances
    from dsbisect.shared_studies import Shared
    from dsharness.model import Campaign, SharedRun
    from dsresults.store import Store


def follow_shared(
    document: Mapping[str, JsonValue], around: Circumstances | CommitsCircumstances
) -> None:
    """`bisect … --on`: begin the run, or find the one that is under way, and show it."""
    from dsmany.attached import begin_run
    from dsmany.fleet import MachineCount

    count = MachineCount.read(around.machines or MACHINES)
    with shared_store(around.on or "", store=around.store) as shared:
        run = begin_run(
            shared,
            document,
            machines=count.at_most,
            at_least=count.at_least,
            class_name=around.class_name,
        )
        typer.echo(f"run {run.id}", err=True)
        follow_run(shared, run, around.output, events=around.events, as_json=around.as_json)


def follow_run(
    store: Store, run: SharedRun, output: Path | None, *, events: bool, as_json: bool
) -> None:
    from dsbisect.cli.search_progress import Events, SearchProgress
    from dsbisect.shared_studies import shared_study
    from dsmany.attached import until_answered

    study = shared_study(run)
    with Events() if events else SearchProgress() as watch:
        campaigns = until_answered(store, run, study, watch)
    _tell(study, store, campaigns, output, as_json=as_json)


def _tell(
    study: Shared,
    store: Store,
    campaigns: tuple[Campaign, ...],
    output: Path | None,
    *,
    as_json: bool,
) -> None:
    """The answer as one machine tells it."""
    from dsbisect.commits.commits_study import CommitsResult
    from dsbisect.commits.shared_commits import SharedCommits
    from dsbisect.rows_study import Findings
    from dsbisect.studies import Rows

    if isinstance(study, SharedCommits):
        outcome = CommitsResult.of_run(campaigns, store)
        tell_commits(study.ask.matrix, outcome, output, as_json=as_json)
    elif isinstance(study.study, Rows):
        findings = Findings.of(campaigns, store)
        request, every = study.study.request(study.scene), study.study.every
        tell_findings(request, findings, output, as_json=as_json, every=every)
    else:
        tell_kept(study.stored_answer(campaigns, store), output, as_json=as_json)


@contextmanager
def shared_store(on: str, *, store: str | None = None) -> Iterator[Store]:
    """The store that machines share; UsageError for one that they cannot, or for --store too."""
    from dsharness.errors import UsageError
    from dsresults.store import Store

    if store:
        raise UsageError("--store and --on: two databases", hint="leave out --store")
    refuse_database(on)
    with Store.open(on) as shared:
        yield shared
