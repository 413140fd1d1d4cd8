"""How to ask the same question again."""

from __future__ import annotations

import shlex

from dsharness.model import DECIDER
from dsresults.compare.comparison_table import ComparisonTable


def repeat_command(comparison: ComparisonTable) -> str:
    """The command line that measures a line again under the same loads."""
    if comparison.command:
        return comparison.command
    argv = ["dsbisect", "bisect", "rows", "--series", comparison.series_id]
    if comparison.line:
        argv += ["--good", comparison.line[0], "--bad", comparison.line[-1]]
    if comparison.metric != DECIDER:
        argv += ["--metric", comparison.metric]
    for column in comparison.columns:
        argv += ["--workload", column.workload_id]
    return shlex.join([*argv, "--settings", comparison.settings_id])
