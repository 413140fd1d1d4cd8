"""The proof of a small step, as `bisect commits` has it: both sides are built again, several times.

What one build has by its layout is another one's by chance. A step that several builds of both
sides do not show is not named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from dssearch.build_scatter import BUILDS, PILOT_RUNS, SMALL, pooled_step, runs_each
from searchbench.findings import Finding, Said
from searchbench.machine import Machine
from searchbench.worlds import World

LEVEL = 0.95


def proved(finding: Finding, world: World) -> Finding:
    """What is left of an answer after the proof; its runs are none of the search's."""
    if finding.said is not Said.STEP or finding.effect is None or len(finding.named) != 1:
        return finding
    step, culprit = sum(finding.effect) / 2, min(finding.named)
    if abs(step) >= SMALL or world.broken.intersection((culprit - 1, culprit)):
        return finding
    sides = Sides.of(world, culprit)
    sides.measure(PILOT_RUNS)
    sides.measure(runs_each([*sides.before, *sides.after], step) - PILOT_RUNS)
    step_found = pooled_step(sides.before, sides.after, LEVEL)
    if step_found.differs and (step_found.size > 0) == (step > 0):
        return finding
    return replace(finding, said=Said.UNDECIDED, named=frozenset())


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The logs of the runs of each build, before the culprit and with it."""

    culprit: int
    machines: tuple[Machine, ...]  # one for each build of both
    before: list[list[float]] = field(default_factory=lambda: [[] for _ in range(BUILDS)])
    after: list[list[float]] = field(default_factory=lambda: [[] for _ in range(BUILDS)])

    @classmethod
    def of(cls, world: World, culprit: int) -> Sides:
        worlds = (world.rebuilt(build) for build in range(1, BUILDS + 1))
        machines = tuple(Machine(world_built, speed_seed=world.seed) for world_built in worlds)
        return cls(culprit=culprit, machines=machines)

    def measure(self, more: int) -> None:
        """So many runs of each build that end, in turns of one build of each side."""
        for build, machine in enumerate(self.machines):
            for _ in range(max(0, more)):
                for candidate, runs in (
                    (self.culprit - 1, self.before),
                    (self.culprit, self.after),
                ):
                    runs[build].append(_run(machine, candidate, BUILDS * len(runs[build]) + build))


def _run(machine: Machine, candidate: int, turn: int) -> float:
    while True:
        run = machine.measure(candidate, turn)
        assert run is not None
        if not run.failed:
            return run.cost
