"""Everything a report shows, as values and as text.

report.json is the values, as JSON. The text is for a terminal: the answer first, then the figures,
then the reasons.
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from pydantic import Field

from dsharness.measure.metric import Metric
from dsharness.measure.metrics import COST, CPU, RATE
from dsharness.model import DECIDER, Fact, Machine, Sample, Value
from dsresults.commits_result import SHORT, CommitFindings
from dsresults.compare.comparison_table import Column, ComparisonTable, Observed
from dsresults.compare.latency_curves import OperationLatencies
from dsresults.compare.self_checks import told
from dsresults.compare.usage_courses import WorkloadUsage
from dsresults.explainers import shown_columns
from dsresults.number_text import (
    chance_text,
    figure,
    interval_text,
    second_steps,
    significant,
    sized,
)
from dsresults.profile_pair import ProfilePair
from dsresults.reasons.reason import Reason
from dsresults.tool_steps import ToolStep

NO_NAMES: Mapping[str, str] = MappingProxyType({})
MOST_LETTERS = 60  # of what a commit says of itself, in a sentence


class Section(Value):
    """One line of one series under one settings, and why its answer is what it is."""

    comparison: ComparisonTable
    findings: tuple[Reason, ...] = ()
    latencies: tuple[OperationLatencies, ...] = ()
    usage: tuple[WorkloadUsage, ...] = ()


class MeasuredWith(Value):
    """A machine, and what else of a set-up differs between machines."""

    machine: Machine
    cpu_meter: str | None = None
    loader: str | None = None

    @property
    def facts(self) -> Mapping[str, str]:
        """What is known of it, by name."""
        facts: dict[str, Fact] = {"machine": self.machine.id, **self.machine.facts}
        facts |= {"cpu_meter": self.cpu_meter or "", "loader": self.loader or ""}
        return {name: _spelled(value) for name, value in facts.items() if value != ""}


class LiveShare(Value):
    """One share of the belief: the change is at one of these candidates."""

    place: str
    candidates: int
    chance: float


class LiveSearch(Value):
    """What a search that still runs believes, and what it does next."""

    workload_id: str
    at: str = Field(description="UTC, ISO 8601: when this was written")
    samples: int
    shares: tuple[LiveShare, ...]
    none: float = Field(description="chance that there is no change")
    noise_pct: float | None = Field(default=None, description="by which a run varies")
    machine: str = Field(default="", description="what the machine did meanwhile")
    next_step: str
    why: str
    left_s: float | None = None


class ReportData(Value):
    """The whole report."""

    format: Literal[1] = 1
    title: str
    series_ids: tuple[str, ...]
    measured_from: str = ""
    measured_until: str = ""
    sections: tuple[Section, ...] = ()
    setups: tuple[MeasuredWith, ...] = ()
    samples: tuple[Sample, ...] = ()
    commits: CommitFindings | None = None
    profiles: tuple[ProfilePair, ...] = ()
    live: LiveSearch | None = Field(default=None, description="of `--watch` only")

    @property
    def deciders(self) -> tuple[Metric, ...]:
        """What candidates were judged by, each once."""
        return tuple(dict.fromkeys(section.comparison.decider for section in self.sections))

    @property
    def commit_names(self) -> Mapping[str, str]:
        """What is known of commits by their candidates: ``120a477cbd8c (2022-11-18, Issue …)``."""
        culprits = self.commits.culprits if self.commits else ()
        suspects = {
            culprit.boundary.after or "": culprit.suspects[-1]
            for culprit in culprits
            if culprit.suspects
        }
        return {
            name: f"{suspect.hash[:SHORT]} ({suspect.day}, "
            f"{textwrap.shorten(suspect.subject, MOST_LETTERS, placeholder=' …')})"
            for name, suspect in suspects.items()
        }

    @property
    def addressed(self) -> ReportData:
        """The same with the repository's address, where it has one, instead of a user's folder."""
        if self.commits is None or not self.commits.address:
            return self
        address, folder = self.commits.address, self.commits.repository
        commits = self.commits.model_copy(update={"repository": address})
        data = self.model_copy(update={"commits": commits})
        command = next((section.comparison.command for section in self.sections), "")
        words = (address if word == folder else word for word in shlex.split(command))
        return data.asked_by(shlex.join(words))

    def asked_by(self, command: str) -> ReportData:
        """The report of a command that is not `bisect rows`, so that it can be repeated."""
        sections = tuple(
            section.model_copy(
                update={"comparison": section.comparison.model_copy(update={"command": command})}
            )
            for section in self.sections
        )
        return self.model_copy(update={"sections": sections})


def report_schema() -> str:
    """The JSON Schema of report.json, which is published in docs."""
    schema = ReportData.model_json_schema(mode="serialization")
    return json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _spelled(fact: Fact) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, tuple) else str(fact)


def repeat_command(comparison: ComparisonTable) -> str:
    """The command line that measures a line again under the same loads."""
    if comparison.command:
        return comparison.command
    argv = ["dsbisect", "bisect", "rows", "--series", comparison.series_id]
    if comparison.line:
        argv += ["--good", comparison.line[0], "--bad", comparison.line[-1]]
    names = (column.named for column in comparison.columns)
    return shlex.join([*argv, *same_loads(comparison.metric, names, comparison.settings_id)])


def same_loads(metric: str, workloads: Iterable[str], settings: str) -> list[str]:
    """The options that measure under the same loads and compare by the same metric."""
    decides = [] if metric == DECIDER else ["--metric", metric]
    loads = [word for name in workloads for word in ("--workload", name)]
    return [*decides, *loads, "--settings", settings]


def sentences(comparison: ComparisonTable, names: Mapping[str, str] = NO_NAMES) -> Iterator[str]:
    """The answer of each workload, with its figure; a commit is called as ``names`` says."""
    for column in comparison.columns:
        yield f"{_answer(comparison, column, names)}."


def _answer(comparison: ComparisonTable, column: Column, names: Mapping[str, str]) -> str:
    found, load = column.boundary, column.workload_id
    if found is None:
        return f"With {load} the search has not ended"
    if found.direction == "none" and found.smallest_visible_pct is not None:
        ends = f"{comparison.line[0]} and {comparison.line[-1]}"
        seen = f"a drop of {significant(found.smallest_visible_pct)} % would have been seen"
        return f"With {load} there is no difference between {ends}; {seen}"
    if not found.found or found.effect is None:
        return f"With {load}: {found.summary}"
    words = comparison.decider.words
    said = sized(words, found)
    unsure = "one of " if len(found.suspects) > 1 else ""
    named = f"{', '.join(found.suspects[:4])}{' …' if len(found.suspects) > 4 else ''}"
    who = f"{unsure}{named}" if unsure else names.get(found.after or "", found.after)
    verb = "" if words.verb else "is "
    by = "" if words.verb or comparison.decider is COST else f" by {comparison.decider.label}"
    also = (
        f"; {step_words}, a second step ({chance_text(found.chances.get(step.after, 0.0))})"
        for step, step_words in second_steps(words, found)
    )
    first = f"With {load}, {who} {verb}{said}{by} than {found.before}{interval_text(found)}"
    return "".join((first, *also))


WIDTH = 100
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")  # a matrix must not control the terminal


def render_text(data: ReportData) -> str:
    """Plain text, at most 100 columns where names allow it."""
    lines = [data.title, "=" * min(len(data.title), WIDTH)]
    for section in data.sections:
        lines += ["", *_section(section)]
    for pair in data.profiles:
        if step := ToolStep.of(pair.tools):
            lines += ["", *_wrapped(f"{step.text}.", f"{pair.workload_id}: ")]
    return _CONTROLS.sub("?", "\n".join(lines)) + "\n"


def _section(section: Section) -> Iterator[str]:
    comparison = section.comparison
    settings = f" ({comparison.settings_title})" if comparison.settings_title else ""
    by = "" if comparison.decider is COST else f", compared by {comparison.decider.label}"
    yield f"Series {comparison.series_id}, settings {comparison.settings_id}{settings}{by}"
    for column in comparison.columns:
        yield ""
        yield from _column(comparison, column)
    if section.findings:
        yield ""
        yield "Why"
        for finding in section.findings:
            yield from _finding(finding)
    yield ""
    yield "Repeat it with"
    yield f"  {repeat_command(comparison)}"
    if comparison.superseded:
        yield f"Earlier campaigns left out: {', '.join(comparison.superseded)}"


def _column(comparison: ComparisonTable, column: Column) -> Iterator[str]:
    title = f"{column.workload_id}: {column.title}" if column.title else column.workload_id
    summary = column.boundary.summary if column.boundary else "the search has not ended"
    yield title
    yield from _wrapped(summary, "  => ")
    if column.boundary and len(column.boundary.suspects) > 1:
        yield f"  suspects: {', '.join(column.boundary.suspects)}"
    rows = (cells(comparison, one, column) for one in column.observed)
    yield from _table([headings(comparison), *rows])
    for one in column.observed:
        if one.unmeasured:
            yield from _wrapped(f"{one.candidate}: {one.unmeasured}", "  not measured: ")
    if column.checks:
        yield from _wrapped(told(column.checks), "  ")


def _values(comparison: ComparisonTable) -> tuple[Metric, ...]:
    return (*filter(None, [comparison.value_shown]), RATE, CPU)


def headings(comparison: ComparisonTable) -> tuple[str, ...]:
    ratio = COST.heading if comparison.decider is COST else comparison.decider.words.ratio
    values = (metric.heading for metric in _values(comparison))
    facts = (each.heading for each in shown_columns(comparison))
    return ("candidate", "verdict", ratio, "95 % interval", *values, *facts)


def cells(comparison: ComparisonTable, observed: Observed, column: Column) -> tuple[str, ...]:
    candidate = comparison.candidate(observed.candidate)
    published = f" (published {candidate.published.verdict})" if candidate.published else ""
    return (
        f"{candidate.id} {candidate.product_version}".rstrip(),
        column.verdict_word(observed) + published,
        *_ratio(observed, comparison.metric, reference=column.reference),
        *(_value(observed, metric) for metric in _values(comparison)),
        *(str(each.read(observed.facts) or "-") for each in shown_columns(comparison)),
    )


def _value(observed: Observed, metric: Metric) -> str:
    value = observed.metrics.get(metric.name)
    return "-" if value is None else figure(metric, value)


def _ratio(observed: Observed, metric: str, *, reference: str | None) -> tuple[str, str]:
    """How many times slower than the first end, and the interval."""
    found = observed.ratios.get(metric)
    if found is None:
        return "-", "-"
    if observed.candidate == reference:
        return "1x", "reference"
    if found.interval is None:
        return f"{significant(found.value)}x", "-"
    low, high = found.interval
    return f"{significant(found.value)}x", f"{significant(low)} to {significant(high)}"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield ("  " + "  ".join(cells)).rstrip()


def _finding(finding: Reason) -> Iterator[str]:
    yield from _wrapped(f"[{finding.confidence.value}] {finding.topic}. {finding.text}", "  - ")
    for line in (*finding.evidence, *finding.links):
        yield from _wrapped(line, "      ")


def _wrapped(text: str, first: str) -> list[str]:
    # Ids contain hyphens, and links must not be broken.
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_on_hyphens=False,
        break_long_words=False,
    )
