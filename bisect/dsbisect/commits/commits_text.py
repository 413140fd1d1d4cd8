"""The answer of a search over commits, as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from dsbisect.commits.commits_study import CommitsResult
from dsbuilds.history.culprit import Suspect
from dsharness.model import Matrix
from dsresults.commits_result import CommitFindings, Comparison, Culprit
from dsresults.number_text import count_intervals
from dsresults.report import ReportData, default_folder, report_data, same_loads, write_report

FILES_SHOWN = 10
MARK = {True: "supports", False: "CONTRADICTS", None: "no evidence"}


def answer_text(findings: CommitFindings) -> str:
    """Everything for a screen, the culprit first."""
    return "\n".join(_printable(line) for line in _lines(findings))


def _printable(line: str) -> str:
    """A commit's text cannot control the terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )


def _lines(findings: CommitFindings) -> Iterator[str]:
    if not findings.culprits:
        yield findings.whole.summary
    if findings.ends_compared is not None:
        yield from _comparison(findings.ends_compared)
    for culprit in findings.culprits:
        yield from _culprit(culprit)
        yield ""
    yield from (f"note: {note}" for note in findings.remarks)
    if findings.whole.direction == "faster":
        yield f"note: good {findings.good[:12]} is the slow end"
    yield from _range(findings)
    for name, why in findings.whole.unmeasured.items():
        yield f"not measured: {name}: {why.splitlines()[0]}"
    if findings.spent_text is not None:
        yield findings.spent_text


def _culprit(culprit: Culprit) -> Iterator[str]:
    boundary = culprit.boundary
    if culprit.proved is False:
        yield "NOT PROVED: the comparisons at the end contradict the search"
    elif culprit.proof and culprit.proved is None:
        yield "not proved: builds from nothing of both sides could not be told apart"
    if len(culprit.suspects) > 1:
        yield (
            f"one of {len(culprit.suspects)} commits {culprit.made_it}; they cannot be told "
            "apart, because the commits between could not be measured:"
        )
    for suspect in culprit.suspects:
        yield from _commit(suspect)
    yield f"    {boundary.summary}"
    if culprit.only_in_good:
        yield "    made after the branches have parted: good has it, bad does not"
    if culprit.proof:
        yield "  proof:"
        yield from (line for comparison in culprit.proof for line in _comparison(comparison))
    if culprit.backports:
        yield "  backports:"
        yield from (line for comparison in culprit.backports for line in _comparison(comparison))


def _commit(facts: Suspect) -> Iterator[str]:
    yield f"commit {facts.hash}"
    yield f"  author:  {facts.author}"
    yield f"  date:    {facts.date}"
    yield f"  subject: {facts.subject}"
    yield f"  files:   {_files(facts)}"
    if facts.link:
        yield f"  link:    {facts.link}"
    for number, release in enumerate(facts.releases):
        yield f"  {'' if number else 'in:':<9}{release.text}"
    if facts.elsewhere:
        yield f"  also as: {', '.join(commit[:12] for commit in facts.elsewhere)}"


def _files(facts: Suspect) -> str:
    files_shown = facts.counting[:FILES_SHOWN]
    more = len(facts.counting) - len(files_shown)
    parts = [", ".join(files_shown) + (f" and {more} more" if more else "")] if files_shown else []
    if facts.unread:
        word = f" other{'s' if facts.unread > 1 else ''}" if files_shown else ""
        parts.append(f"{facts.unread}{word} that the server does not read")
    return ("; " if more else " and ").join(parts) or "none"


def _comparison(comparison: Comparison) -> Iterator[str]:
    interval = ""
    if comparison.counts is not None:
        interval = f" (intervals {count_intervals(comparison.counts)})"
    elif comparison.size and comparison.interval is not None:
        interval = f" (interval {comparison.interval[0]:.2f} to {comparison.interval[1]:.2f})"
    outcome = f"{comparison.outcome_text}{interval}"
    yield f"    {comparison.title}: {outcome}; {MARK[comparison.confirms]}"
    if comparison.how:
        yield f"      {comparison.how}"
    if comparison.note:
        yield from (f"      {line}" for line in comparison.note.splitlines())


def _range(findings: CommitFindings) -> Iterator[str]:
    hashes = f"{findings.good[:12]} to {findings.bad[:12]}"
    named = " to ".join(findings.ends)
    yield (
        f"{findings.commits} commits from {named}{'' if named == hashes else f' ({hashes})'} with "
        f"{findings.workload}: {findings.builds} builds and {findings.samples} samples"
    )
    if findings.equal:
        yield f"{findings.equal_text}: listed in the report"


def write_findings(matrix: Matrix, outcome: CommitsResult, output: Path | None) -> Path:
    """Write the report; the page's path."""
    folder = output or default_folder(report_name(outcome))
    return write_report(folder, findings_data(matrix, outcome))


def report_name(outcome: CommitsResult) -> str:
    """What the folder of its report is called after."""
    return outcome.campaigns[0].series_id if outcome.campaigns else "commits"


def findings_data(matrix: Matrix, outcome: CommitsResult) -> ReportData:
    """Everything that the report of a search over commits shows."""
    data = report_data(matrix, outcome.campaigns, outcome.samples, outcome.images, outcome.profiles)
    findings = outcome.findings
    columns = (column for section in data.sections for column in section.comparison.columns)
    load = next((column.named for column in columns), findings.workload)
    command = shlex.join(
        [
            "dsbisect",
            "bisect",
            "commits",
            "--repo",
            findings.repository,
            "--good",
            findings.good,
            "--bad",
            findings.bad,
            *same_loads(findings.whole.metric, [load], findings.settings),
        ]
    )
    sections = tuple(
        section.model_copy(update={"comparison": section.comparison.looked_at()})
        for section in data.sections
    )
    report = data.model_copy(
        update={"commits": findings, "title": findings.title, "sections": sections}
    )
    return report.asked_by(command)
