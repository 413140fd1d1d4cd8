"""Everything a report shows, as values; report.json is this, as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Literal

from dsharness.measure.metric import Metric
from dsharness.model import DECIDER, Fact, Machine, Sample, Value
from dsresults.commits_result import CommitFindings
from dsresults.compare.comparison_table import ComparisonTable
from dsresults.compare.latency_curves import OperationLatencies
from dsresults.profile_pair import ProfilePair
from dsresults.reasons.reason import Reason


class Section(Value):
    """One line of one series under one settings, and why its answer is what it is."""

    comparison: ComparisonTable
    findings: tuple[Reason, ...] = ()
    latencies: tuple[OperationLatencies, ...] = ()


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
