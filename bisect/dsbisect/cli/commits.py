"""`commits`: find the commit that made the server slow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsbisect.cli.options import (
    ArmId,
    AsJson,
    EventLines,
    Keep,
    Level,
    MostBuilds,
    MostHours,
    MostRuns,
    OutsideMatrix,
    ReportFolder,
    SearchRule,
    StorePlace,
    outside,
)
from dsbisect.manner import Manner
from dsharness.errors import ExitCode

Repo = Annotated[
    str, typer.Option("--repo", help="Checkout, bare repository or URL; only ever read.")
]
Toolchain = Annotated[
    str | None, typer.Option("--toolchain", help="Build everything with this one of the matrix.")
]
Edits = Annotated[
    list[str] | None,
    typer.Option("--edit", help="Change every source by meaning, e.g. default-scheme=SSHA512."),
]
Patches = Annotated[
    list[Path] | None, typer.Option("--patch", help="Apply a patch file to every source.")
]
WorkloadId = Annotated[
    str | None, typer.Option("--workload", help="What to drive it with. Default: the matrix's.")
]


def bisect_commits(  # noqa: PLR0913 - each is an option
    *,
    repo: Repo,
    good: Annotated[str, typer.Option("--good", help="A revision that is fast.")],
    bad: Annotated[str, typer.Option("--bad", help="A later revision that is slow.")],
    workload: WorkloadId = None,
    arm: ArmId = "default",
    first_parent: Annotated[
        bool,
        typer.Option("--first-parent", help="Stop at a merge; do not look into what it merged."),
    ] = False,
    paths: Annotated[
        list[str] | None,
        typer.Option("--paths", help="Only commits that touch these can be the culprit."),
    ] = None,
    fix: Annotated[
        list[str] | None,
        typer.Option("--fix", help="A commit to pick onto sources that do not build without it."),
    ] = None,
    edit: Edits = None,
    patch: Patches = None,
    toolchain: Toolchain = None,
    no_proof: Annotated[
        bool, typer.Option("--no-proof", help="Leave out clean builds and counterfactuals.")
    ] = False,
    backports: Annotated[
        bool, typer.Option("--backports", help="Also measure the culprit's like on other branches.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show candidates, builds, runs and hours; do nothing.")
    ] = False,
    matrix: OutsideMatrix = None,
    store: StorePlace = None,
    output: ReportFolder = None,
    keep: Keep = False,
    search: SearchRule = "statistical",
    level: Level = Manner.level,
    most_runs: MostRuns = Manner.most_runs,
    most_builds: MostBuilds = None,
    most_hours: MostHours = None,
    events: EventLines = False,
    prior: Annotated[
        list[str] | None,
        typer.Option("--prior", help="PATTERN=WEIGHT: how suspicious files are; repeatable."),
    ] = None,
    no_prior: Annotated[
        bool, typer.Option("--no-prior", help="Suspect every commit alike, whatever it changes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the commit that made the server slow, and prove it.

    Example: dsbisect commits --repo ~/389-ds-base --good 389-ds-base-2.0.16
    --bad 389-ds-base-2.0.17 --workload bind-one
    """
    from dsbisect.cli.events import Events
    from dsbisect.cli.watching import Watch
    from dsbisect.commits.asking import Ask
    from dsbisect.commits.expecting import expected, expected_text
    from dsbisect.commits.prior import prior_table
    from dsbisect.commits.range import survey
    from dsbisect.commits.reporting import write_findings
    from dsbisect.commits.study import run_commits
    from dsbisect.commits.telling import told
    from dsharness.matrix import find_arm, find_workload, load_matrix
    from dsharness.probing import detect
    from dsresults.store import Store

    manner = Manner(
        name=search, level=level, most_runs=most_runs, most_builds=most_builds,
        most_hours=most_hours,
    )  # fmt: skip
    checked = load_matrix(matrix, folder=False)
    ask = Ask(
        matrix=checked,
        workload=find_workload(checked, workload or checked.defaults.workloads[0]),
        arm=find_arm(checked, arm),
        repository=repo,
        good=good,
        bad=bad,
        first_parent=first_parent,
        paths=tuple(paths or ()),
        fixes=tuple(fix or ()),
        edits=tuple(edit or ()),
        patches=tuple(patch or ()),
        toolchain=toolchain,
        proof=not no_proof,
        backports=backports,
        keep=keep,
        prior=prior_table(prior or ()),
        flat=no_prior,
    )
    scope = survey(ask)
    forecast = expected(ask, scope)
    if dry_run:
        text = forecast.model_dump_json(indent=2) if as_json else expected_text(forecast)
        typer.echo(text)
        return
    engine = detect()
    place = Store.open(store, folder=outside(repo))
    with place as opened, Events() if events else Watch() as watch:
        watch.note(expected_text(forecast).splitlines()[0])
        outcome = run_commits(ask, scope, engine=engine, store=opened, watcher=watch, manner=manner)
    path = write_findings(checked, outcome, output)
    findings = outcome.findings
    typer.echo(findings.model_dump_json(indent=2) if as_json else f"{told(findings)}\n{path}")
    contradicted = any(culprit.proved is False for culprit in findings.culprits)
    if contradicted or findings.whole.direction == "unknown":
        raise typer.Exit(ExitCode.INCONCLUSIVE)
