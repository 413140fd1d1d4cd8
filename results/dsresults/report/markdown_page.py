"""The report as Markdown, for a place that shows no page: the answer, the table, why, again.

What a commit or a matrix says is shown as code: no character of it means anything to Markdown, and
nobody is mentioned by it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsharness.plain_text import without_folders
from dsresults.commits_result import Comparison, Culprit
from dsresults.number_text import capital, chance_text, significant
from dsresults.page.page_markdown import block, code, table, words
from dsresults.profile_pair import ProfilePair, changed_functions
from dsresults.report.report_data import (
    ReportData,
    Section,
    cells,
    headings,
    repeat_command,
    sentences,
)
from dsresults.times_table import notes_rows, notes_text, times_cells, times_rows
from dsresults.tool_steps import ToolStep

MOST_CHANCES = 8


def render_markdown(data: ReportData) -> str:
    """The whole report, but for single samples."""
    return "\n".join(map(without_folders, _lines(data.addressed))) + "\n"


def _lines(data: ReportData) -> Iterator[str]:
    yield f"# {words(data.title)}"
    for section in data.sections:
        for sentence in sentences(section.comparison, data.commit_names):
            yield from ("", f"**{words(sentence)}**")
    for culprit in data.commits.culprits if data.commits else ():
        yield from _culprit(culprit)
    for section in data.sections:
        yield from _section(section)
    for pair in data.profiles:
        yield from _profile(pair)
    for setup in data.setups:
        facts = ", ".join(f"{words(name)} {code(value)}" for name, value in setup.facts.items())
        yield from ("", "## Measured on", "", facts)


def _culprit(culprit: Culprit) -> Iterator[str]:
    yield from ("", f"## The commit that {culprit.made_it}")
    for suspect in culprit.suspects:
        named = f"[{code(suspect.hash[:12])}]({suspect.link})" if suspect.link else ""
        yield from ("", f"{named or code(suspect.hash[:12])} {code(suspect.subject)}", "")
        yield f"- files: {', '.join(map(code, suspect.counting[:20])) or 'none that are read'}"
        yield from (f"- in {words(release.text)}" for release in suspect.releases)
    compared = (*culprit.proof, *culprit.backports)
    if compared:
        yield ""
        yield from table(("compared", "outcome", "interval", "supports"), map(_proof, compared))


def _proof(each: Comparison) -> tuple[str, ...]:
    interval = f"{each.interval[0]:.2f} to {each.interval[1]:.2f}" if each.interval else "-"
    supports = {True: "yes", False: "no", None: "no evidence"}[each.confirms]
    return words(each.title), words(each.outcome_text), interval, supports


def _profile(pair: ProfilePair) -> Iterator[str]:
    before, after = map(code, pair.names)
    yield from ("", f"## Where the time goes: {code(pair.workload_id)}, {before} to {after}")
    if step := ToolStep.of(pair.tools):
        yield from ("", words(f"{capital(step.text)}."))
    for caption, unit, changes in changed_functions(pair):
        yield from ("", words(caption), "")
        yield from table(
            ("function", f"{before}, {unit}", f"{after}, {unit}"),
            (
                (code(each.function), significant(each.before), significant(each.after))
                for each in changes
            ),
        )
    yield from times_lines(pair)


def times_lines(pair: ProfilePair) -> Iterator[str]:
    """What the server's own log says of both sides; nothing where there is no log."""
    rows = times_rows(pair.times)
    if not rows:
        return
    sides = [f"{code(name)} {percentile}" for name in pair.names for percentile in ("p50", "p99")]
    yield ""
    yield from table(
        ("operation", "time by the server's own log, µs", *sides),
        (tuple(map(words, times_cells(row))) for row in rows),
    )
    for row in notes_rows(pair.times):
        yield from ("", words(notes_text(row)))


def _section(section: Section) -> Iterator[str]:
    comparison = section.comparison
    for column in comparison.columns:
        yield from ("", f"## {words(column.title or column.workload_id)}", "")
        found = column.boundary
        yield words(found.summary) if found else "The search has not ended."
        chances = found.step_chances if found else {}
        if chances:
            likely = sorted(chances, key=lambda name: -chances[name])[:MOST_CHANCES]
            told = ", ".join(f"{code(name)} {chance_text(chances[name])}" for name in likely)
            yield from ("", f"Chance that the change is there: {told}")
        yield ""
        rows = (map(words, cells(comparison, one, column)) for one in column.observed)
        yield from table(tuple(map(words, headings(comparison))), map(tuple, rows))
        for one in column.observed:
            if one.unmeasured:
                yield from ("", f"Not measured: {code(one.candidate)}: {code(one.unmeasured)}")
    if section.findings:
        yield from ("", "## Why", "")
        for finding in section.findings:
            said = f"**{words(finding.topic)}.** {words(finding.text)}"
            yield " ".join((f"- *{finding.confidence.value}*: {said}", *finding.links))
            yield from (f"  - {words(line)}" for line in finding.evidence)
    yield from ("", "## Again", "")
    yield from block([repeat_command(comparison)])
