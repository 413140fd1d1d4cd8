"""The text of an issue for the makers of a server, in the sections that they ask for.

One screen is shown, the rest is folded. What a commit says stands as code, so that it mentions
nobody and formats nothing.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence

from dsharness.errors import UsageError
from dsharness.measure.metrics import (
    COST,
    CPU,
    INSTRUCTIONS,
    LATENCY,
    LATENCY_P99,
    MEMORY,
    RATE,
    find_metric,
)
from dsharness.model import Boundary, Sample, Value
from dsresults.commits_result import Culprit
from dsresults.compare.comparison_table import Candidate, Column, ComparisonTable
from dsresults.explainers import shown_columns
from dsresults.moved_packages import PackageChange
from dsresults.number_text import chance_text, figure, interval_text, significant, sized
from dsresults.page.page_markdown import block, code, table, words
from dsresults.profile_pair import ProfilePair, function_changes
from dsresults.report.markdown_page import times_lines
from dsresults.report.report_data import ReportData, repeat_command

SHORT = 7  # digits of a hash, as upstream writes them
VERSION = re.compile(r"(?:[0-9]+:)?[0-9]+(?:\.[0-9]+)+")
MOST_FUNCTIONS = 5
MOST_PACKAGES = 12  # that are shown
SHOWN = (CPU, RATE, LATENCY, LATENCY_P99, INSTRUCTIONS, MEMORY)
OPERATIONS = {"search": "search (uid=…)"}


class UpstreamIssue(Value):
    """What is pasted."""

    title: str
    body: str

    @property
    def text(self) -> str:
        return f"{self.title}\n\n{self.body}"


def upstream_issue(
    data: ReportData, *, since: str = "", moved: Sequence[PackageChange] = ()
) -> UpstreamIssue:
    """Return the issue of the first change to the worse; UsageError where there is none.

    ``since`` says what it came with, where no version or commit does; ``moved`` are all packages
    by which both sides differ.
    """
    comparison, column, found = worse(data)
    return _issue(data, comparison, column, found, since, moved)


def worse(data: ReportData) -> tuple[ComparisonTable, Column, Boundary]:
    """Return where the first change to the worse was found."""
    for section in data.sections:
        for column in section.comparison.columns:
            found = column.boundary
            if found and found.found and found.direction == "slower" and found.effect:
                return section.comparison, column, found
    raise UsageError(
        "there is nothing to tell upstream: no change to the worse was found",
        hint="`dsbisect report` says what was found; --issue needs a boundary",
    )


def _issue(
    data: ReportData,
    comparison: ComparisonTable,
    column: Column,
    found: Boundary,
    since: str,
    moved: Sequence[PackageChange],
) -> UpstreamIssue:
    culprits = data.commits.culprits if data.commits else ()
    culprit = next((each for each in culprits if each.boundary.after == found.after), None)
    after = comparison.candidate(found.after or "")
    since = since or _since(after, culprit)
    operation = column.workload.operation if column.workload else column.workload_id
    what = OPERATIONS.get(str(operation), str(operation))
    title = f"{what} {_costs(comparison, found)} since {since}"
    samples = [s for s in data.samples if s.campaign_id == column.campaign_id and s.valid]
    parts = (
        ("Issue Description", _described(data, comparison, column, found, culprit, samples)),
        (
            "Package Version and Platform",
            (*_platform(data, comparison, found, culprit), *_moved(moved)),
        ),
        ("Steps to Reproduce", _steps(comparison, column)),
        ("Expected results", _expected(comparison, found, samples, since)),
        ("Additional context", _context(data, comparison, column, found, culprit, samples)),
    )
    lines = [line for name, part in parts for line in (f"**{name}**", "", *part, "")]
    return UpstreamIssue(title=title, body="\n".join(lines).rstrip() + "\n")


def _since(after: Candidate, culprit: Culprit | None) -> str:
    if culprit and len(culprit.suspects) == 1:
        return culprit.suspects[0].hash[:SHORT]
    version = VERSION.match(after.product_version)
    return version[0] if version else re.sub(r"[^A-Za-z0-9.-]", " ", after.id)[:60]


def _costs(comparison: ComparisonTable, found: Boundary) -> str:
    """``costs 1.4 times more CPU``: no sign, no percent; of counts, from where to where."""
    if found.counts is not None:
        return sized(comparison.decider.words, found)
    effect = found.effect or 1.0
    size = f"{effect:.1f} times" if effect < 10 else f"{effect:.0f} times"
    if comparison.decider in {COST, CPU}:
        return f"costs {size} more CPU"
    said = comparison.decider.words
    return f"{'' if said.verb else 'is '}{said.said('slower', size)}"


def _described(
    data: ReportData,
    comparison: ComparisonTable,
    column: Column,
    found: Boundary,
    culprit: Culprit | None,
    samples: Sequence[Sample],
) -> Iterator[str]:
    before, after = (comparison.candidate(name or "") for name in (found.before, found.after))
    yield words(
        f"{_named(after)} {_costs(comparison, found)} than {_named(before)}"
        f"{interval_text(found)}: {column.title or column.workload_id}."
    )
    for suspect in culprit.suspects if culprit else ():
        named = f"[{code(suspect.hash[:12])}]({suspect.link})" if suspect.link else ""
        yield from ("", f"Commit: {named or code(suspect.hash[:12])} {code(suspect.subject)}")
    if culprit:
        yield from ("", "If this is the wrong commit, please say so.")
    yield ""
    names = (found.before or "", found.after or "")
    yield from table(
        ("median (lowest to highest)", *(code(name) for name in names)), _rows(samples, names)
    )
    gained = [
        f"{code(change.function)} {significant(change.before)} to {significant(change.after)} µs"
        for profile in data.profiles
        if profile.campaign_id == column.campaign_id
        for change in function_changes(profile)
        if change.change > 0
    ]
    if gained:
        yield ""
        yield f"CPU per operation of the functions that gained most: {'; '.join(gained[:MOST_FUNCTIONS])}"  # noqa: E501


def _named(candidate: Candidate) -> str:
    version = candidate.product_version
    return f"{candidate.product_title} {version} ({candidate.id})" if version else candidate.id


def _rows(samples: Sequence[Sample], names: tuple[str, str]) -> Iterator[tuple[str, ...]]:
    """A row for each metric that both sides have."""
    for metric in SHOWN:
        cells = [_spread(samples, name, metric.name) for name in names]
        if all(cells):
            yield metric.title, *cells


def _spread(samples: Sequence[Sample], name: str, metric: str) -> str:
    known = [
        value
        for sample in samples
        if sample.candidate_id == name and (value := sample.value(metric)) is not None
    ]
    if not known:
        return ""
    shown = find_metric(metric)
    middle, low, high = statistics.median(known), min(known), max(known)
    return words(f"{figure(shown, middle)} ({figure(shown, low)} to {figure(shown, high)})")


def _platform(
    data: ReportData, comparison: ComparisonTable, found: Boundary, culprit: Culprit | None
) -> Iterator[str]:
    for name in (found.before, found.after):
        each = comparison.candidate(name or "")
        versions = ", ".join(f"{noun} {version}" for noun, version in each.versions.items())
        yield f"- {code(each.id)}: {words(', '.join(filter(None, (each.system, versions))))}"
    for setup in data.setups[:1]:
        told = (setup.facts.get(name) for name in ("cpu_model", "cpu_count", "kernel"))
        model, count, kernel = (each or "?" for each in told)
        yield f"- Machine: {words(model)}, {words(count)} CPUs, Linux {words(kernel)}"
    for suspect in culprit.suspects if culprit else ():
        if suspect.releases:
            carried = "; ".join(release.text for release in suspect.releases)
            yield f"- Branches and releases that carry it: {words(carried)}"


def _moved(changes: Sequence[PackageChange]) -> Iterator[str]:
    """A table of packages, folded where it is long."""
    if not changes:
        return
    fold = len(changes) > MOST_PACKAGES
    counted = f"{len(changes)} packages differ"
    yield from ("", f"<details><summary>{counted}</summary>" if fold else f"{counted}:", "")
    rows = (
        (code(each.name), code(each.before or "-"), code(each.after or "-")) for each in changes
    )
    yield from table(("package", "before", "after"), rows)
    yield from ("", "</details>") if fold else ()


def _steps(comparison: ComparisonTable, column: Column) -> Iterator[str]:
    options = ", ".join(map(code, comparison.options)) or "none beyond the package's own"
    load = ", ".join(f"{name} {value}" for name, value in column.parameters.items())
    yield f"1. Settings: {options}"
    yield f"2. Data and load: {words(load)}"
    yield "3. From an empty machine, with dsbisect (`--reproducer DIR` of its report writes the same for ldclt and ldapsearch alone):"  # noqa: E501
    yield ""
    yield from block([repeat_command(comparison)])


def _expected(
    comparison: ComparisonTable, found: Boundary, samples: Sequence[Sample], since: str
) -> Iterator[str]:
    metric = CPU if comparison.decider is COST else comparison.decider
    before = _spread(samples, found.before or "", metric.name)
    yield f"As before {words(since)}: {before or 'the cost of ' + code(found.before or '')}."


def _context(
    data: ReportData,
    comparison: ComparisonTable,
    column: Column,
    found: Boundary,
    culprit: Culprit | None,
    samples: Sequence[Sample],
) -> Iterator[str]:
    yield "<details><summary>How it was found, what was ruled out, every sample</summary>"
    yield from ("", words(found.summary), "")
    for each in (*culprit.proof, *culprit.backports) if culprit else ():
        note = f" ({words(each.note)})" if each.note else ""
        yield f"- {words(each.title)}: {words(each.outcome_text)}{note}"
    for profile in data.profiles:
        if profile.campaign_id == column.campaign_id and profile.times:
            yield from times_lines(profile)
            yield ""
            yield from block(_log_lines(profile))
    chances = sorted(found.step_chances.items(), key=lambda pair: -pair[1])[:8]
    if chances:
        told = ", ".join(f"{code(name)} {chance_text(chance)}" for name, chance in chances)
        yield f"- Chance that the change is there: {told}"
    for fact in shown_columns(comparison):
        sides = (column.of(name or "") for name in (found.before, found.after))
        first, second = (str(fact.read(side.facts) or "-") if side else "-" for side in sides)
        said = f"did not change: {first}" if first == second else f"from {first} to {second}"
        yield f"- {words(fact.heading)}: {words(said)}"
    yield ""
    rows = (
        (code(s.candidate_id), str(s.turn), *(_of(s, metric) for metric in (CPU.name, RATE.name)))
        for s in samples
    )
    yield from table(("candidate", "turn", "CPU", "rate"), rows)
    yield from ("", "</details>")


def _log_lines(pair: ProfilePair) -> Iterator[str]:
    for whose, what, lines in pair.excerpts:
        yield from (f"# {whose}: {what}", *lines)


def _of(sample: Sample, metric: str) -> str:
    value = sample.value(metric)
    return "-" if value is None else words(figure(find_metric(metric), value))
