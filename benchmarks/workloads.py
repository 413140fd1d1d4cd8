"""Each workload of the matrix over one series of rows: what it says there, in one table.

    make bench-workloads                                  all that Debian's rows can be asked
    make bench-workloads BENCH="--only idle --only search-equality@10000"
    make bench-workloads BENCH="--series openldap"

Runs `dsbisect bisect rows` as a user does, once for each workload and metric. Run the same command
again to resume: what was measured is not measured again. Prints a line for each and a table for
docs/workloads.md; ends with 1 if one of them ended without an answer. Reports are in
results/runs/workloads.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.upstream import ROOT, table, where_it_ran
from dsharness.errors import ExitCode
from dsharness.matrix.loader import find_row, find_series, find_workload, load_matrix
from dsharness.matrix.series_graph import graph_of
from dsharness.model import DECIDER, Matrix, Value
from dsharness.systems import answers
from dsresults.compare.comparison_table import Column
from dsresults.report.report_data import ReportData

RUNS = ROOT / "results" / "runs" / "workloads"
METRICS = {
    "search-schedule": ("latency-p99",),
    "disturbed-paged": ("latency-p99",),
    "disturbed-calm": ("latency-p99",),
    "disturbed-autobind": ("latency-p99",),
    "disturbed-connect": ("latency-p99",),
    "disturbed-import": ("latency-p99",),
    "disturbed-import-calm": ("latency-p99",),
    "kerberos-schedule": ("latency-p99",),
    "session": (DECIDER, "latency-p99"),
    "idle": ("context-switches", "wake-ups", "cpu"),
    "search-modify": (DECIDER, "written"),
}  # all others: what decides by default


class Asked(Value):
    """A workload by a metric, and what came of it."""

    workload: str
    metric: str
    status: int
    seconds: float
    columns: tuple[Column, ...] = ()

    @property
    def said(self) -> str:
        """The answer in words, of each line of the series."""
        summaries = [column.boundary.summary for column in self.columns if column.boundary]
        return "; ".join(summaries) or f"no answer (status {self.status})"

    def cells(self, rows: Sequence[str]) -> Iterator[str]:
        """The workload with its metric, how much each row takes, the answer."""
        yield f"`{self.workload}`" + ("" if self.metric == DECIDER else f", `{self.metric}`")
        yield from map(self._times, rows)
        yield self.said

    def _times(self, row: str) -> str:
        """In units of the reference; nothing where it was not measured."""
        for column in self.columns:
            if (column_row := column.of(row)) and column_row.valid:
                ratio = column_row.ratios.get(self.metric)
                return f"{ratio.value:.3g}" if ratio else "1" if row == column.reference else ""
        return ""


def questions(
    matrix: Matrix, rows: Sequence[str], only: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Workloads that all of these rows can be asked, each with its metrics."""
    systems = {find_row(matrix, row).system for row in rows}
    for name in only or [load.id for load in matrix.workloads]:
        workload = find_workload(matrix, name)
        if all(answers(system, workload) for system in systems):
            for metric in METRICS.get(workload.id, (DECIDER,)):
                yield workload.named, metric


def ask(series: str, workload: str, metric: str) -> Asked:
    """`dsbisect bisect rows`, and what it said; KeyboardInterrupt where the user ended it."""
    folder = RUNS / f"{series}-{workload}-{metric}"
    RUNS.mkdir(parents=True, exist_ok=True)
    words = (
        "bisect",
        "rows",
        "--series",
        series,
        "--workload",
        workload,
        "--metric",
        metric,
        "--store",
        str(RUNS / "dsbisect.db"),
        "--output",
        str(folder),
    )
    print(f"dsbisect {' '.join(words)}", file=sys.stderr, flush=True)
    start_s = time.monotonic()
    program = [sys.executable, "-c", "from dsbisect.program import main; main()"]
    result = subprocess.run([*program, *words], stdout=subprocess.DEVNULL, check=False)
    if result.returncode == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    seconds = time.monotonic() - start_s
    answer = Asked(workload=workload, metric=metric, status=result.returncode, seconds=seconds)
    report = folder / "report.json"
    if result.returncode not in {ExitCode.OK, ExitCode.INCONCLUSIVE} or not report.exists():
        return answer
    data = ReportData.model_validate_json(report.read_text(encoding="utf-8"))
    columns = [column for part in data.sections for column in part.comparison.columns]
    return answer.model_copy(update={"columns": tuple(columns)})


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--series", default="debian", help="default: debian")
    parser.add_argument("--only", action="append", default=[], metavar="WORKLOAD")
    options = parser.parse_args()
    matrix = load_matrix(ROOT / "matrix.yaml")
    rows = tuple(graph_of(find_series(matrix, options.series)))
    answers: list[Asked] = []
    try:
        for workload, metric in questions(matrix, rows, options.only):
            answers.append(ask(options.series, workload, metric))
            print(
                f"{answers[-1].seconds:.0f} s {workload}, {metric}: {answers[-1].said}", flush=True
            )
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        head = ("workload", *rows, "answer")
        print(f"\n`make bench-workloads`, {where_it_ran()}:\n")
        print(table(head, [tuple(answer.cells(rows)) for answer in answers]), flush=True)
    return 0 if all(answer.columns for answer in answers) else 1


if __name__ == "__main__":
    sys.exit(main())
