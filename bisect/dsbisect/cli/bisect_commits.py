"""`bisect commits`: find the commit that made a server slow, and prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import (
    AsJson,
    EventLines,
    FindLoad,
    Keep,
    MachineClass,
    MachineNumber,
    MeasuredOn,
    OutsideMatrix,
    Refs,
    ReportFolder,
    StorePlace,
    refuse_unread,
)
from dsbisect.cli.followed_run import follow_shared
from dsbisect.cli.sought_load import refuse_named_load, sought_load
from dsbisect.cli.study_command import Circumstances, command_of
from dsbisect.cli.told_answers import tell_commits
from dsbisect.commits.commits_question import Commits

if TYPE_CHECKING:
    from dsbisect.commits.commit_range import Range
    from dsbisect.commits.commits_request import CommitsRequest


@dataclass(frozen=True, kw_only=True)
class CommitsCircumstances:
    """Where commits are measured, and how the answer is told."""

    plan: Annotated[
        bool, typer.Option("--plan", help="Show candidates, builds, runs and hours; do nothing.")
    ] = False
    find_load: FindLoad = False
    matrix: OutsideMatrix = None
    store: StorePlace = None
    output: ReportFolder = None
    keep: Keep = False
    on: MeasuredOn = None
    machines: MachineNumber = None
    class_name: MachineClass = ""
    refs: Refs = ""
    events: EventLines = False
    as_json: AsJson = False

    @property
    def of_studies(self) -> Circumstances:
        """Those of them that every study has, on this machine."""
        return Circumstances(
            store=self.store,
            output=self.output,
            keep=self.keep,
            events=self.events,
            as_json=self.as_json,
        )


def ask_commits(study: Commits, around: CommitsCircumstances) -> None:
    """Lay the range, say what it will take, and have it searched."""
    from dsbisect.commits.commit_range import expected_text, forecast_of, laid_range
    from dsbisect.commits.commits_request import with_usual_workload
    from dsbisect.study_lab import Scene
    from dsharness.matrix import load_matrix

    refuse_unread(around.on, around.machines, around.class_name, around.refs)
    if around.find_load:
        refuse_named_load("--on" if around.on else "--workload" if study.workload else "")
    scene = Scene(matrix=load_matrix(around.matrix, folder=False))
    ask = study.request(scene, keep=around.keep)
    scope = laid_range(ask)
    if study.workload is None:
        ask = with_usual_workload(ask, scope.repository, scope.bad)
    forecast = forecast_of(ask, scope)
    if around.plan:
        text = expected_text(forecast)
        typer.echo(forecast.model_dump_json(indent=2) if around.as_json else text)
        return
    notes = (expected_text(forecast).splitlines()[0], *(f"note: {note}" for note in scope.notes))
    if around.on is None:
        _search_here(study, ask, scope, around, notes)
    else:
        _share(study, ask, scope, around, notes)


def _share(
    study: Commits,
    ask: CommitsRequest,
    scope: Range,
    around: CommitsCircumstances,
    notes: tuple[str, ...],
) -> None:
    from dsbisect.commits.shared_commits import document_of
    from dslab.lab_conditions import refuse_shares

    refuse_shares((ask.workload,))
    for note in notes:
        typer.echo(note, err=True)
    follow_shared(document_of(ask, scope, study.options, around.refs), around)


def _search_here(
    study: Commits,
    ask: CommitsRequest,
    scope: Range,
    around: CommitsCircumstances,
    notes: tuple[str, ...],
) -> None:
    from dsbisect.cli.search_progress import Events, SearchProgress
    from dsbisect.commits.commits_study import CommitsResult, run_commits
    from dsbisect.commits.commits_text import answer_text, write_findings
    from dsbisect.found_load import ends_of_commits, looks_for_load
    from dsbisect.study_lab import Scene
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    engine = detect()
    if looks_for_load(study):
        scene = Scene(matrix=ask.matrix)  # only what is compared is read into it
        load = sought_load(ends_of_commits(study, scope), scene, around.of_studies, notes)
        ask = replace(ask, workload=load.workload, metric=load.metric) if load else ask
        notes = ()
    place = Store.open(around.store)
    with place as store, Events() if around.events else SearchProgress() as watch:

        def tell_so_far(known: CommitsResult) -> None:
            page = write_findings(ask.matrix, known, around.output)
            watch.note(f"{answer_text(known.findings)}\n{page}")

        for note in notes:
            watch.note(note)
        outcome = run_commits(
            ask,
            scope,
            engine=engine,
            store=store,
            observer=watch,
            options=study.options,
            so_far=tell_so_far,
        )
    tell_commits(ask.matrix, outcome, around.output, as_json=around.as_json)


bisect_commits = command_of(Commits, CommitsCircumstances, ask_commits)
