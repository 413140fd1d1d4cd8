"""Gate 4: both sides under every workload of the profile, until it is clear which is slower."""

from __future__ import annotations

from dsvalidate.performs_gate.paired_samples import SpeedQuestion
from dsvalidate.performs_gate.paired_steps import lost_memory_step, workload_step
from dsvalidate.step import Step


def steps(question: SpeedQuestion) -> tuple[Step, ...]:
    """List one step for each workload, and one for memory that is lost."""
    return (
        *(workload_step(question, workload) for workload in question.workloads),
        lost_memory_step(question),
    )
