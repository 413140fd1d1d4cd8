"""Gate 4: both sides under every workload of the profile, until it is clear which is slower."""

from collections.abc import Sequence

from dsbisect.validate.performs_gate import latency_step
from dsbisect.validate.performs_gate.leak_step import leak_of_workloads
from dsbisect.validate.performs_gate.speed_step import workload_step
from dsbisect.validate.step import Step
from dsharness.model import Workload


def steps(workloads: Sequence[Workload]) -> tuple[Step, ...]:
    """One for a single client, one for each workload, and one for memory that is lost."""
    return (latency_step.STEP, *map(workload_step, workloads), leak_of_workloads(workloads))
