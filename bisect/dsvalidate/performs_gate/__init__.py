"""Gate 4: both sides under every workload of the profile, until it is clear which is slower."""

from __future__ import annotations

from dsvalidate.dirsrv.latency_step import single_client_step
from dsvalidate.performs_gate.leak_step import lost_memory_step
from dsvalidate.performs_gate.paired_samples import SpeedQuestion
from dsvalidate.performs_gate.speed_step import workload_step
from dsvalidate.step import Step
from dsvalidate.step_tools import EvidenceFolder


def steps(question: SpeedQuestion, evidence: EvidenceFolder) -> tuple[Step, ...]:
    """One for a single client, one for each workload, and one for memory that is lost."""
    return (
        single_client_step(question, evidence),
        *(workload_step(question, workload) for workload in question.workloads),
        lost_memory_step(question),
    )
