"""`build survey`: which of a repository's tags can be built, started and measured."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, OutsideMatrix

if TYPE_CHECKING:
    from dsbisect.survey.build_result import TagResult


class Progress:
    """Prints on standard error what is tried, and how long the rest will take."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._new = self._done = 0

    def begin(self, tags: int, known: int, new: int) -> None:
        self._new = new
        noun = "tag" if tags == 1 else "tags"
        self._say(f"{tags} {noun}: {new} to try, {known} known already")

    def trying(self, tag: str, toolchain: str, what: str) -> None:
        self._say(f"{tag} ({toolchain}): {what}")

    def found(self, finding: TagResult) -> None:
        from dsbisect.cli.progress_terminal import spell_left

        if finding.known:
            return
        self._done += 1
        each_s = (time.monotonic() - self._begun) / self._done
        left = spell_left(max(0, self._new - self._done) * each_s)
        came = finding.outcome
        how = "it can be measured" if came.binds else came.why_not
        self._say(
            f"{finding.tag} ({finding.toolchain}): {how} ({self._done} of {self._new}, {left})"
        )

    def _say(self, text: str) -> None:
        typer.echo(f"{time.monotonic() - self._begun:5.0f} s {text}", err=True)


def survey(
    *,
    repo: Annotated[str, typer.Option("--repo", help="Checkout, bare repository or URL.")],
    tags: Annotated[
        str | None,
        typer.Option("--tags", help="Only tags that match this pattern. Default: its releases."),
    ] = None,
    matrix: OutsideMatrix = None,
    as_json: AsJson = False,
) -> None:
    """Build and start each tag with each toolchain that fits, and print what can be measured.

    It continues where it was interrupted, and prints what it knows however it ends.

    Example: dsbisect build survey --repo ~/src/server --tags 'v2.*'
    """
    from dsbisect.survey.tag_survey import Survey, run_survey
    from dsharness.containers.engine_probe import detect
    from dsharness.matrix import load_matrix

    asked = Survey(matrix=load_matrix(matrix, folder=False), repository=repo, tags=tags)
    findings: list[TagResult] = []
    try:
        for finding in run_survey(asked, detect(), Progress()):
            findings.append(finding)  # noqa: PERF402 - an error must not lose those so far
    finally:
        _print(findings, as_json=as_json)


def _print(findings: Sequence[TagResult], *, as_json: bool) -> None:
    from dsbisect.survey.survey_table import summary_of, table_of

    if as_json:
        typer.echo(json.dumps([each.model_dump(mode="json") for each in findings], indent=2))
    elif findings:
        typer.echo(f"{table_of(findings)}\n{summary_of(findings)}")
