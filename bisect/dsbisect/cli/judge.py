"""`judge`: one commit, good or bad, as a script for `git bisect run`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    AsJson,
    Edits,
    MetricName,
    OutsideMatrix,
    Patches,
    SettingsId,
    StorePlace,
    Toolchain,
    WorkloadId,
)
from dsbisect.program import JUDGED_BAD, JUDGED_GOOD, SKIP
from dsharness.errors import UsageError

WORDS = {JUDGED_GOOD: "good", JUDGED_BAD: "bad", SKIP: "skip"}


def judge(  # noqa: PLR0913 - each is an option
    revision: Annotated[str, typer.Argument(help="The commit to judge.")] = "HEAD",
    *,
    repo: Annotated[str, typer.Option("--repo", help="The repository.")] = ".",
    good: Annotated[
        str | None, typer.Option("--good", help="A fast reference. Default: git bisect's first.")
    ] = None,
    bad: Annotated[
        str | None, typer.Option("--bad", help="A slow reference. Default: git bisect's first.")
    ] = None,
    workload: WorkloadId = None,
    settings_id: SettingsId = "default",
    metric: MetricName = DEFAULT_METRIC,
    edit: Edits = None,
    patch: Patches = None,
    toolchain: Toolchain = None,
    incremental: Annotated[
        bool,
        typer.Option(
            "--incremental", help="Build on what commits before it left, if you trust them all."
        ),
    ] = False,
    matrix: OutsideMatrix = None,
    store: StorePlace = None,
    as_json: AsJson = False,
) -> None:
    """Judge one commit against two references: 0 good, 1 bad, 125 skip.

    A script for `git bisect run`: every failure is 125, with a warning.
    A matrix.yaml in the working folder is not read: it belongs to the commit.

    Example: dsbisect judge HEAD --good v2.0.16 --bad main --workload bind-one
    """
    from dsbisect.commits.commits_request import CommitsRequest, check_ask, with_usual_workload
    from dsbuilds.history.repository import Repository
    from dsharness.matrix import find_settings, find_workload, load_matrix
    from dsharness.measure.metrics import find_metric

    checked = load_matrix(matrix, folder=False)
    bisecting = {} if good and bad else _bisecting(repo)
    ask = CommitsRequest(
        matrix=checked,
        workload=find_workload(checked, workload or checked.defaults.workloads[0]),
        settings=find_settings(checked, settings_id),
        repository=repo,
        good=_reference("good", good, bisecting),
        bad=_reference("bad", bad, bisecting),
        metric=find_metric(metric).name,
        edits=tuple(edit or ()),
        patches=tuple(patch or ()),
        toolchain=toolchain,
        clean=not incremental,
    )
    check_ask(ask)
    if workload is None:
        ask = with_usual_workload(ask, Repository.open(repo), ask.good)

    from dsbisect.cli.search_progress import SearchProgress
    from dsbisect.commits.source_lab import judge_commit
    from dsharness.containers.engine_probe import detect
    from dsresults.store import Store

    engine = detect()
    with Store.open(store) as opened, SearchProgress() as watch:
        side, why = judge_commit(ask, revision, engine=engine, store=opened, observer=watch)
    code = {True: JUDGED_BAD, False: JUDGED_GOOD, None: SKIP}[side]
    if code == SKIP:
        typer.echo(f"warning: not judged, skipped: {why}", err=True)
    facts = {"commit": revision, "verdict": WORDS[code], "why": why}
    try:
        typer.echo(json.dumps(facts) if as_json else f"{WORDS[code]}: {why}")
    finally:
        raise typer.Exit(code)  # a measured verdict stays valid, even if it cannot be printed


def _bisecting(repo: str) -> dict[str, str]:
    """The first good and bad commit of a `git bisect` that is in progress.

    SourceError for what is no repository at all.
    """
    from dsbuilds.git import git
    from dsbuilds.history.repository import origin_of

    origin_of(repo)
    log = git("-C", str(Path(repo)), "bisect", "log") if Path(repo).is_dir() else None
    commits: dict[str, str] = {}
    for word, commit in re.findall(
        r"^# (good|bad): \[([0-9a-f]+)\]", log.stdout if log else "", re.MULTILINE
    ):
        commits.setdefault(word, commit)
    return commits


def _reference(word: str, revision: str | None, bisecting: dict[str, str]) -> str:
    reference = revision or bisecting.get(word)
    if reference is None:
        raise UsageError(
            f"no {word} reference: no `git bisect` is in progress here",
            hint=f"name one: --{word} REVISION",
        )
    return reference
