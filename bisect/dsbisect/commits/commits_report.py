"""The report of a search over commits: the page of its campaigns, with the culprit on top."""

from __future__ import annotations

import shlex
from pathlib import Path

from dsbisect.commits.commits_study import CommitsResult
from dsharness.model import Matrix
from dsresults.report import default_folder, report_data, write_report


def write_findings(matrix: Matrix, outcome: CommitsResult, output: Path | None) -> Path:
    """Write report.html and report.json; the page's path."""
    data = report_data(matrix, outcome.campaigns, outcome.samples, outcome.images)
    findings = outcome.findings
    title = f"{findings.repository}: {findings.good[:12]} to {findings.bad[:12]}"
    command = shlex.join([
        "dsbisect", "bisect", "commits", "--repo", findings.repository, "--good", findings.good,
        "--bad", findings.bad, "--workload", findings.workload, "--settings", findings.settings,
    ])  # fmt: skip
    sections = tuple(
        section.model_copy(update={"comparison": section.comparison.looked_at()})
        for section in data.sections
    )
    whole = data.model_copy(update={"commits": findings, "title": title, "sections": sections})
    whole = whole.asked_by(command)
    name = outcome.campaigns[0].series_id if outcome.campaigns else "commits"
    return write_report(output or default_folder(name), whole)
