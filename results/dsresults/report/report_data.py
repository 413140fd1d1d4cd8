"""Everything a report shows, as values; report.json is this, as JSON."""

from __future__ import annotations

from typing import Any, Literal

from dsharness.measure.metrics import Metric
from dsharness.model import Sample, Value
from dsresults.commits_result import CommitFindings
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.reasons.reason import Reason


class Section(Value):
    """One line of one series under one settings, and why its answer is what it is."""

    comparison: ComparisonTable
    findings: tuple[Reason, ...] = ()


class ReportData(Value):
    """The whole report."""

    format: Literal[1] = 1
    title: str
    series_ids: tuple[str, ...]
    measured_from: str = ""
    measured_until: str = ""
    sections: tuple[Section, ...] = ()
    environments: tuple[dict[str, Any], ...] = ()
    samples: tuple[Sample, ...] = ()
    commits: CommitFindings | None = None

    @property
    def deciders(self) -> tuple[Metric, ...]:
        """What candidates were judged by, each once."""
        return tuple(dict.fromkeys(section.comparison.decider for section in self.sections))

    def asked_by(self, command: str) -> ReportData:
        """The report of a command that is not `bisect rows`, so that it can be repeated."""
        sections = tuple(
            section.model_copy(
                update={"comparison": section.comparison.model_copy(update={"command": command})}
            )
            for section in self.sections
        )
        return self.model_copy(update={"sections": sections})
