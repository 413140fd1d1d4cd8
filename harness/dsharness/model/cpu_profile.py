"""Where the CPU time of a server went while it answered a load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pydantic import Field

from dsharness.model.value import Value

FRAMES_APART = ";"
Frames = tuple[str, ...]  # from the root to the leaf


class CpuProfile(Value):
    """The stacks that were seen in a run of its own, which is never a sample."""

    candidate_id: str
    workload_id: str
    event: str = Field(description="what perf went by: cycles, or the clock of a CPU")
    operations: int
    cpu_us_per_op: float = Field(description="of that run, in which perf itself costs a little")
    stacks: dict[str, int] = Field(
        description="frames from the root to the leaf, with ';' between -> how often it was seen"
    )

    @property
    def seen(self) -> int:
        """How many stacks were seen."""
        return sum(self.stacks.values())

    def us_per_op(self) -> Mapping[Frames, float]:
        """The CPU time of an operation that each stack has: counts of two runs don't compare."""
        each = self.cpu_us_per_op / max(1, self.seen)
        return {
            tuple(stack.split(FRAMES_APART)): count * each for stack, count in self.stacks.items()
        }


def path_totals(amounts: Mapping[Frames, float]) -> Mapping[Frames, float]:
    """What each path from the root has with all that it calls; the empty one has everything."""
    within: dict[Frames, float] = defaultdict(float)
    for frames, amount in amounts.items():
        for depth in range(len(frames) + 1):
            within[frames[:depth]] += amount
    return within
