"""`build survey`: which of a repository's commits can be built, started and measured."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Collection, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dsbisect.cli.common_options import AsJson, OutsideMatrix

if TYPE_CHECKING:
    from dsbisect.survey.probe import SourceResult
    from dsbisect.survey.survey_table import SurveyTable

HEARTBEAT_S = 60.0
MANY = 20  # sources take a second or more to read
SEEDS = 1_000_000
MOST_JOBS = 4  # a build wants up to two GiB


class SurveyProgress:
    """Prints on standard error each line when it is known, and once a minute what is tried."""

    def __init__(self) -> None:
        self._begun = self._said = time.monotonic()
        self._ended: list[float] = []
        self._new = 0
        self._trying: dict[tuple[str, str], str] = {}
        self._table: SurveyTable | None = None
        self._widths: tuple[int, ...] = ()
        self.note = ""  # on the sample

    def reading(self, sources: int) -> None:
        """What each needs is read from its files before the first is tried."""
        if sources > MANY:
            self._say(f"reading {sources} sources")

    def begin(self, lines: Sequence[str], products: Collection[str], known: int, note: str) -> None:
        from dsbisect.survey.survey_table import aligned, table_for

        self._new, self.note = len(lines) - known, note
        self._table = table_for(products)
        # None is complete yet: wide enough for what most of them will say.
        typical = (max(lines, key=len, default=""), "debian-13", "optional-rust, pcre1")
        words = zip_longest(self._table.head, typical, fillvalue="")
        self._widths = tuple(max(map(len, cells)) for cells in words)
        if note:
            self._say(note)
        noun = "line" if len(lines) == 1 else "lines"
        self._say(f"{len(lines)} {noun}: {self._new} to try, {known} known already")
        if self._new:
            self._say(aligned(self._table.head, self._widths))
        self._ended.append(time.monotonic())

    def trying(self, source: str, toolchain: str, stage: str) -> None:
        self._trying[source, toolchain] = stage

    def paused(self, source: str) -> None:
        for key in [key for key in self._trying if key[0] == source]:
            self._trying.pop(key, None)

    def found(self, finding: SourceResult) -> None:
        from dsbisect.survey.survey_table import aligned

        if finding.known or self._table is None:
            return
        self._ended.append(time.monotonic())
        row = self._table.row(finding)
        counted = f"({len(self._ended) - 1} of {self._new}{self._left})"
        self._say(f"{aligned(row, self._widths)} {counted}")

    def waiting(self) -> None:
        if time.monotonic() - self._said < HEARTBEAT_S:
            return
        doing = (
            f"{source} ({toolchain}): {stage}"
            for (source, toolchain), stage in sorted(self._trying.copy().items())
        )
        counted = f"{len(self._ended) - 1} of {self._new} done{self._left}"
        self._say("; ".join([counted, *doing]))

    @property
    def _left(self) -> str:
        from dsbisect.cli.search_progress import spell_left
        from dsbisect.survey.source_survey import left_s

        seconds_left = left_s(self._ended, self._new - len(self._ended) + 1, time.monotonic())
        return "" if seconds_left is None else f", {spell_left(seconds_left)}"

    def _say(self, text: str) -> None:
        self._said = time.monotonic()
        typer.echo(f"{self._said - self._begun:5.0f} s {text}", err=True)


def survey(  # noqa: PLR0913 - each is an option
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WHAT]...",
            help="Tags, revisions, patterns of tags, and A..B for all releases between two "
            "versions. Default: all releases.",
            show_default=False,
        ),
    ] = None,
    *,
    repo: Annotated[str, typer.Option("--repo", help="Checkout, bare repository or URL.")],
    sample: Annotated[
        int | None,
        typer.Option(
            "--sample", metavar="N", help="Draw N commits at random, too.", show_default=False
        ),
    ] = None,
    between: Annotated[
        str | None,
        typer.Option(
            "--between",
            metavar="A..B",
            help="Draw from these releases' histories. Default: all releases.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            help="Equal seeds draw equal commits. Default: any; it is printed.",
            show_default=False,
        ),
    ] = None,
    every_toolchain: Annotated[
        bool,
        typer.Option(
            "--every-toolchain", help="Try all that fit, not only until the first one works."
        ),
    ] = False,
    toolchain: Annotated[
        str | None, typer.Option("--toolchain", help="Only this one, by id.", show_default=False)
    ] = None,
    plain: Annotated[
        bool,
        typer.Option(
            "--plain/--no-plain",
            help="Build what fails once more from nothing, with every file and no setting.",
            show_default=False,
        ),
    ] = True,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            help="Sources at the same time. Default: the CPUs, at most 4.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--table", help="Write the table to this file.", show_default=False),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(
            "--knowledge",
            help="Write which toolchains work for which versions: a product's seen_builds.yaml.",
            show_default=False,
        ),
    ] = None,
    matrix: OutsideMatrix = None,
    as_json: AsJson = False,
) -> None:
    """Build and start commits, and print what can be measured, and why the others cannot.

    Each is tried in the best toolchain that fits, and in the next where that fails.
    It continues where it was interrupted, and prints what it knows however it ends.

    Example: dsbisect build survey --repo ~/src/server 'v2.*' v3.0..main

    Example: dsbisect build survey --repo ~/src/server --sample 60 --between v2.0..main --seed 7
    """
    from dsbisect.survey.chosen_sources import Selection
    from dsbisect.survey.source_survey import Survey, run_survey
    from dsbisect.survey.survey_table import document_of, markdown_of, summary_of, table_of
    from dsharness.containers.engine_probe import detect
    from dsharness.machine.host import available_cpus
    from dsharness.matrix import load_matrix
    from dsharness.plain_text import without_credentials
    from dsharness.process.command import atomic_write

    _check(sample, between, seed, jobs, toolchain if every_toolchain else None)
    chosen_seed = secrets.randbelow(SEEDS) if seed is None else seed
    survey = Survey(
        matrix=load_matrix(matrix, folder=False),
        repository=repo,
        selection=Selection(
            words=tuple(what or ()), sample=sample or 0, seed=chosen_seed, between=between
        ),
        toolchain=toolchain,
        every_toolchain=every_toolchain,
        plain=plain,
        jobs=jobs or min(MOST_JOBS, len(available_cpus())),
    )
    findings: list[SourceResult] = []
    watch = SurveyProgress()
    try:
        for finding in run_survey(survey, detect(), watch):
            findings.append(finding)  # noqa: PERF402 - an error must not lose those so far
    finally:
        findings.sort(key=lambda each: each.place)
        if as_json:
            document = document_of(findings, without_credentials(repo), watch.note)
            typer.echo(json.dumps(document, indent=2))
        elif findings:
            typer.echo(f"{table_of(findings)}\n{summary_of(findings)}")
        if table is not None and findings:
            atomic_write(table, markdown_of(findings, watch.note))
        if knowledge is not None and findings:
            _write_knowledge(knowledge, findings)


def _write_knowledge(file: Path, findings: Sequence[SourceResult]) -> None:
    from dsbisect.survey.survey_table import knowledge_of
    from dsharness.process.command import atomic_write
    from dsharness.products import seen_builds
    from dsharness.products.seen_builds import SeenBuilds, yaml_of

    product = next((finding.product for finding in findings if finding.product), None)
    before = seen_builds(product) if product else SeenBuilds()
    atomic_write(file, yaml_of(knowledge_of(findings, before)))


def _check(
    sample: int | None, between: str | None, seed: int | None, jobs: int | None, doubled: str | None
) -> None:
    """Refuse what contradicts itself, before anything is opened."""
    from dsharness.errors import UsageError

    if sample is not None and sample < 1:
        raise UsageError(f"--sample {sample}: must be 1 or more", hint="--sample 60")
    if not sample and (between is not None or seed is not None):
        name = "--seed" if between is None else "--between"
        raise UsageError(f"{name} says how a sample is drawn", hint="add --sample N")
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs {jobs}: must be 1 or more", hint="--jobs 2")
    if doubled is not None:
        raise UsageError(
            f"--toolchain {doubled} and --every-toolchain contradict each other",
            hint="name one of them",
        )
