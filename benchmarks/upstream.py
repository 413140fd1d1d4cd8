"""Searches with a known answer in upstream's own history, and a survey of its release series.

    make bench-upstream REPO=~/389-ds-base                        everything
    make bench-upstream REPO=~/389-ds-base BENCH="--only leak"    one of upstream.yaml's, or survey
    make bench-upstream REPO=~/389-ds-base BENCH=--fresh          no build of before is used

Runs `dsbisect` as a user does. Run the same command again to resume, unless it was --fresh.
Prints a line for each, and at the end tables for docs/upstream.md; ends with 1 if an answer is
wrong. Reports and JSON are in results/runs/upstream. What podman has (toolchains, directories that
were filled for an equal build) stays with --fresh: $CONTAINERS_STORAGE_CONF names an empty storage.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator
from ruamel.yaml import YAML

from dsharness.errors import ExitCode
from dsharness.model import Value
from dsproducts import assemble
from dsresults.commits_result import CommitFindings, Culprit

assemble()

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(__file__).with_suffix(".yaml")
RUNS = ROOT / "results" / "runs" / "upstream"
SURVEY = "survey"
MEASURED_AS_STATED = 0.10  # a stated effect may be measured so much smaller or larger


class KnownSearch(Value):
    """A search, and what is known to be right."""

    name: str
    range: str
    workload: str
    metric: str | None = Field(default=None, description="default: CPU time")
    answer: Literal["slower", "faster", "none"]
    commit: str | None = Field(default=None, description="the beginning of its hash")
    times: float | None = Field(default=None, description="by how much, if that is known")
    also: tuple[str, ...] = Field(default=(), description="further culprits that may be named")

    @model_validator(mode="after")
    def _names_its_commit(self) -> KnownSearch:
        if (self.answer == "none") == bool(self.commit):
            raise ValueError(f"{self.name}: a commit belongs to an answer that names one")
        return self


class Questions(Value):
    """All that is asked."""

    survey: tuple[str, ...] = ()
    searches: tuple[KnownSearch, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*([SURVEY] if self.survey else []), *(search.name for search in self.searches))


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one search said, and what is wrong about it: nothing if it is right."""

    search: KnownSearch
    wrong: str
    findings: CommitFindings | None = None

    @property
    def named(self) -> str:
        """The culprits with what they do, or that there are none."""
        if self.findings is None:
            return "no answer"
        names = [_named(culprit) for culprit in self.findings.culprits]
        return ", ".join(names) or self.findings.whole.direction

    @property
    def figures(self) -> tuple[str, ...]:
        """Minutes to the name and to the proof, runs, builds, and where the minutes went."""
        findings = self.findings
        if findings is None or findings.spent is None:
            return ("-",) * 5
        spent = findings.spent
        parts = (spent.builds_s, spent.fills_s, spent.runs_s, spent.rest_s)
        return (
            _minutes(spent.named_s),
            "-" if spent.proved_s is None else _minutes(spent.proved_s),
            str(findings.samples),
            str(findings.builds),
            " / ".join(map(_minutes, parts)),
        )


def judged(search: KnownSearch, findings: CommitFindings | None, status: int) -> Answer:
    """Compare what was found with what is known."""
    wrong = "; ".join(_faults(search, findings, status))
    return Answer(search=search, findings=findings, wrong=wrong)


def _faults(search: KnownSearch, findings: CommitFindings | None, status: int) -> Iterator[str]:
    if findings is None:
        yield f"it ended with status {status} and no answer"
        return
    if status not in {ExitCode.OK, ExitCode.INCONCLUSIVE}:
        yield f"it ended with status {status}"
    if search.commit is None:
        if findings.culprits:
            yield "there is no culprit"
        elif findings.whole.direction != "none":
            yield "it must say that there is no difference"
        return
    rightly_named = [culprit for culprit in findings.culprits if _blames(culprit, search.commit)]
    for culprit in findings.culprits:
        if not any(_blames(culprit, commit) for commit in (search.commit, *search.also)):
            yield f"{_named(culprit)} is no culprit"
    if not rightly_named:
        yield f"{search.commit} is not named"
    for culprit in rightly_named:
        yield from _faults_of(search, culprit)


def _faults_of(search: KnownSearch, culprit: Culprit) -> Iterator[str]:
    boundary = culprit.boundary
    if len(culprit.suspects) > 1:
        yield f"it could not be told from {len(culprit.suspects) - 1} others"
    if boundary.direction != search.answer:
        yield f"it is {search.answer}"
    if search.times and boundary.effect:
        share = boundary.effect / search.times
        if not 1 - MEASURED_AS_STATED <= share <= 1 + MEASURED_AS_STATED:
            yield f"by {search.times:g} times"
    if culprit.proved is False:
        yield "its proof contradicts"


def _blames(culprit: Culprit, commit: str) -> bool:
    return any(suspect.hash.startswith(commit) for suspect in culprit.suspects)


def _named(culprit: Culprit) -> str:
    commits = " or ".join(suspect.hash[:12] for suspect in culprit.suspects)
    effect = culprit.boundary.effect
    return f"{commits} {culprit.boundary.direction}" + (f" {effect:.3g} times" if effect else "")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"


def line_of(answer: Answer) -> str:
    """One search, for a screen."""
    named_min, proved_min, runs, builds, _ = answer.figures
    verdict = f"wrong ({answer.wrong})" if answer.wrong else "right"
    return (
        f"{answer.search.name}: {verdict}: {answer.named}; {named_min} min to the name, "
        f"{proved_min} to the proof, {runs} runs, {builds} builds"
    )


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """A tag, and whether it can be measured: with which toolchain, or why not."""

    tag: str
    toolchain: str = ""
    why_not: str = "not surveyed"
    minutes: str = "-"

    @property
    def measured(self) -> bool:
        return bool(self.toolchain)


def surveyed(tag: str, results: Sequence[Mapping[str, Any]]) -> Surveyed:
    """The first toolchain in which a tag's server answered, among all results of a survey."""
    own = [outcome_row for outcome_row in results if outcome_row["source"] == tag]
    for result in own:
        if result["outcome"].get("answers", result["outcome"].get("binds")):  # kept before, or now
            return Surveyed(
                tag=tag,
                toolchain=result["toolchain"],
                why_not="",
                minutes=_minutes(result["outcome"]["seconds"]),
            )
    reasons = [
        f"{outcome_row['toolchain'] or 'none fits'}: {outcome_row['outcome']['why_not']}"
        for outcome_row in own
    ]
    return Surveyed(tag=tag, why_not="; ".join(reasons)) if own else Surveyed(tag=tag)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A repository, and where results are kept."""

    command: str = "make bench-upstream"
    repository: str
    folder: Path
    store: Path
    options: tuple[str, ...] = ()  # of every search

    def survey(self, tags: Sequence[str]) -> tuple[Surveyed, ...]:
        """`dsbisect build survey` of these tags."""
        status, text = self._dsbisect("build", "survey", "--repo", self.repository, "--json", *tags)
        (self.folder / f"{SURVEY}.json").write_text(text, encoding="utf-8")
        if status == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        results = json.loads(text)["results"] if text.strip() else []
        return tuple(surveyed(tag, results) for tag in tags)

    def search(self, search: KnownSearch) -> Answer:
        """`dsbisect bisect commits`, judged."""
        place = self.folder / search.name
        status, text = self._dsbisect(
            "bisect",
            "commits",
            search.range,
            "--repo",
            self.repository,
            "--workload",
            search.workload,
            *_metric(search),
            "--store",
            str(self.store),
            "--output",
            str(place),
            "--json",
            *self.options,
        )
        (self.folder / f"{search.name}.json").write_text(text, encoding="utf-8")
        if status == ExitCode.INTERRUPTED:
            raise KeyboardInterrupt
        findings = CommitFindings.model_validate_json(text) if text.strip() else None
        return judged(search, findings, status)

    def _dsbisect(self, *words: str) -> tuple[int, str]:
        """Its status and what it printed; progress is shown as it comes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        program = [sys.executable, "-c", "from dsbisect.program import main; main()"]
        print(f"dsbisect {' '.join(words)}", file=sys.stderr, flush=True)
        result = subprocess.run(
            [*program, *words],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        return result.returncode, result.stdout


def _metric(search: KnownSearch) -> tuple[str, ...]:
    return () if search.metric is None else ("--metric", search.metric)


def tables(answers: Sequence[Answer], tags: Sequence[Surveyed], where: str, command: str) -> str:
    """Everything in Markdown, for the docs."""
    parts = [f"`{command}`, {where}:"]
    if answers:
        head = (
            "search",
            "range",
            "load",
            "named",
            "right",
            "minutes to the name",
            "to the proof",
            "runs",
            "builds",
            "minutes of builds / fills / runs / rest",
        )
        rows = [
            (
                answer.search.name,
                f"`{answer.search.range}`",
                " ".join((answer.search.workload, *_metric(answer.search))),
                answer.named,
                f"no: {answer.wrong}" if answer.wrong else "yes",
                *answer.figures,
            )
            for answer in answers
        ]
        parts.append(table(head, rows))
    if tags:
        surveys = [(tag.tag, tag.toolchain or f"no: {tag.why_not}", tag.minutes) for tag in tags]
        parts.append(table(("tag", "measured with", "minutes"), surveys))
    return "\n\n".join(parts)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def where_it_ran() -> str:
    """The date, the machine and this checkout's commit."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        if line.startswith("model name")
    ]
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    cores = len(os.sched_getaffinity(0))
    machine = f"{models[0] if models else platform.machine()}, {cores} cores"
    return f"{datetime.now(UTC):%Y-%m-%d}, {machine}, dsbisect {commit or 'of no checkout'}"


@contextmanager
def bench_of(repository: str, runs: Path, *, fresh: bool) -> Iterator[Bench]:
    """Where everything is kept; with ``fresh`` cache and samples only until the end."""
    if not fresh:
        yield Bench(repository=repository, folder=runs, store=runs / "dsbisect.db")
        return
    with tempfile.TemporaryDirectory(prefix="dsbisect-upstream-") as folder:
        os.environ["DSBISECT_CACHE"] = folder
        yield Bench(repository=repository, folder=runs, store=Path(folder) / "dsbisect.db")


def ask(bench: Bench, questions: Questions, names: Sequence[str]) -> int:
    """Ask those, print a line for each and the tables at the end; 1 if one is wrong."""
    tags: tuple[Surveyed, ...] = ()
    answers: list[Answer] = []
    try:
        if SURVEY in names:
            tags = bench.survey(questions.survey)
            count = sum(tag.measured for tag in tags)
            print(f"{SURVEY}: {count} of {len(tags)} tags can be measured", flush=True)
        for search in questions.searches:
            if search.name in names:
                answers.append(bench.search(search))
                print(line_of(answers[-1]), flush=True)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        if answers or tags:
            print(f"\n{tables(answers, tags, where_it_ran(), bench.command)}", flush=True)
    wrong = any(answer.wrong for answer in answers) or not all(answer.measured for answer in tags)
    return 1 if wrong else 0


def read_questions(path: Path) -> Questions:
    return Questions.model_validate_json(json.dumps(YAML(typ="safe").load(path)))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("repository", metavar="REPO", help="a clone of 389-ds-base, or its URL")
    parser.add_argument("--only", action="append", metavar="NAME", help="this one; repeatable")
    parser.add_argument("--fresh", action="store_true", help="with an empty cache, removed then")
    parser.add_argument("--data", type=Path, default=DATA, help="other questions")
    parser.add_argument("--output", type=Path, default=RUNS, help="folder for reports and JSON")
    options = parser.parse_args()
    if not options.repository:
        parser.error("no repository: make bench-upstream REPO=PATH")
    questions = read_questions(options.data)
    names = options.only or questions.names
    unknown = [name for name in names if name not in questions.names]
    if unknown:
        parser.error(f"no {', '.join(unknown)}; there are: {', '.join(questions.names)}")
    with bench_of(options.repository, options.output, fresh=options.fresh) as bench:
        return ask(bench, questions, names)


if __name__ == "__main__":
    sys.exit(main())
