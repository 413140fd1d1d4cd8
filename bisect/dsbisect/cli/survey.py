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


HEAD = ("tag", "toolchain", "built", "starts", "binds", "minutes", "why not")


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
        outcome = finding.outcome
        how = "it can be measured" if outcome.binds else outcome.why_not
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
    if as_json:
        typer.echo(json.dumps([each.model_dump(mode="json") for each in findings], indent=2))
    elif findings:
        typer.echo(f"{table_of(findings)}\n{summary_of(findings)}")


def table_of(findings: Sequence[TagResult]) -> str:
    """One line for each tag and toolchain, with the reason if it failed."""
    lines = [HEAD, *(_line(each) for each in findings)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def summary_of(findings: Sequence[TagResult]) -> str:
    """How many tags can be searched, and from which to which."""
    tags = list(dict.fromkeys(each.tag for each in findings))
    good = {each.tag for each in findings if each.outcome.binds}
    usable = [tag for tag in tags if tag in good]
    if not usable:
        return f"none of {len(tags)} tags can be measured"
    return f"{len(usable)} of {len(tags)} tags can be measured: {usable[-1]} to {usable[0]}"


def _line(each: TagResult) -> tuple[str, ...]:
    found = each.outcome
    stages = ("yes" if reached else "no" for reached in (found.built, found.starts, found.binds))
    minutes = f"{found.seconds / 60:.1f}" + (" (before)" if each.known and found.seconds else "")
    return (each.tag, each.toolchain or "none fits", *stages, minutes, found.why_not)
