"""Gate 4: both sides under every workload of the profile, until it is clear which is slower."""

from collections.abc import Sequence

from dsbisect.validate.performs_gate.speed_step import workload_step
from dsbisect.validate.step import Step
from dsharness.model import Workload


def steps(workloads: Sequence[Workload]) -> tuple[Step, ...]:
    """One for each."""
    return tuple(workload_step(workload) for workload in workloads)
