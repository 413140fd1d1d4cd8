"""What a lab can tell of its candidates apart from samples, each in a run of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dsharness.measure.exact_counters import take_function_counts
from dsharness.measure.heap_growth import in_massif, take_heap_growth
from dsharness.measure.profiler import take_profile, take_times
from dsharness.measure.second_tool import makes, take_tool_runs
from dsharness.measure.thread_waits import take_thread_waits
from dsharness.model import (
    CpuProfile,
    FunctionCounts,
    HeapGrowth,
    ServerTimes,
    ThreadWaits,
    ToolRuns,
    Workload,
)
from dsharness.systems.system import Configured
from dslab.laboratory import Laboratory


@dataclass(frozen=True, kw_only=True)
class LabInspections:
    """The inspections of one lab; each run has a server that is started for it."""

    lab: Laboratory

    def profile(self, candidate: str, workload: Workload) -> CpuProfile:
        """Where a candidate's CPU time goes under a load."""
        with self.lab.apart(candidate) as bench:
            return take_profile(bench, workload)

    def server_times(self, candidate: str, workload: Workload) -> ServerTimes | None:
        """How long its operations take by its own log; None if it has no such log."""
        with self.lab.apart(candidate) as bench:
            return take_times(bench, workload)

    def function_counts(self, candidate: str, workload: Workload) -> FunctionCounts:
        """How many instructions each function has."""
        with self.lab.apart(candidate, self.lab.valgrind()) as bench:
            return take_function_counts(bench, workload)

    def heap_growth(self, candidate: str, workload: Workload) -> HeapGrowth:
        """Where memory stays after its operations."""
        with self.lab.apart(candidate, in_massif(self.lab.valgrind().image)) as bench:
            return take_heap_growth(bench, workload)

    def thread_waits(self, candidate: str, workload: Workload) -> ThreadWaits:
        """Where its threads wait."""
        with self.lab.apart(candidate) as bench:
            return take_thread_waits(bench, workload)

    def second_tool(self, candidate: str, workload: Workload) -> ToolRuns | None:
        """What its operations cost by another tool; None for loads that no other tool makes."""
        loader = self.lab.second_tool() if makes(workload) else None
        if loader is None:
            return None
        with self.lab.apart(candidate, loader=loader) as bench:
            return take_tool_runs(bench, workload)

    def configuration(self, candidate: str) -> Mapping[str, str]:
        """How its server is set; nothing of a kind that does not tell."""
        with self.lab.apart(candidate) as bench:
            system = bench.instance.system
            if not isinstance(system, Configured):
                return {}
            return system.configuration(bench.instance.endpoint)
