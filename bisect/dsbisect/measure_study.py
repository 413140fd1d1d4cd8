"""Runs of one row that are taken now: some of each workload, or the row against itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dsbisect.capacity import without_shares
from dsbisect.cli.common_options import DEFAULT_METRIC
from dsbisect.mixed_arms import MixedArm
from dsbisect.open_campaigns import whole_runs
from dsbisect.study import Study, StudyKind
from dsbisect.study_lab import Lab, Scene, ThisMachine
from dsharness.model import Sample, Workload
from dslab.candidates import ArmSupply
from dslab.lab_conditions import refuse_shares
from dssearch.planner import Rounds


class RowRuns(Study):
    """Measure one row, whether its runs are valid or not."""

    kind: ClassVar[StudyKind] = "measure"

    row: str
    workload: tuple[str, ...] = ()  # those of the matrix that fit
    runs: int  # of each workload

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return (self.row,)

    def questions(self, scene: Scene) -> int:
        return len(self.loads(scene))

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        systems = [scene.matrix.row(self.row).system]
        loads = scene.chosen_workloads(self.workload, systems)
        refuse_shares(loads)
        return without_shares(loads, self.decider)  # that the metric says something of

    def play(self, lab: Lab) -> list[Sample]:
        loads = self.loads(lab.scene)
        with lab.rows(self, *loads) as runs:
            runs.refuse_failed()
            rounds = Rounds.of(self.runs)
            return [sample for load in loads for sample in runs.fresh(load, (self.row,), rounds)]


class RowNoise(RowRuns):
    """Measure one row as a search measures two, so that only noise differs."""

    metric: str = DEFAULT_METRIC
    keeps: bool = True  # a server from one turn to the next

    @property
    def sides(self) -> tuple[str, str]:
        return self.row, f"{self.row}-again"

    @property
    def decider(self) -> str:
        return self.metric

    def pairs(self, scene: Scene) -> bool:
        del scene
        return True

    def supply(self, machine: ThisMachine) -> TwinSupply:
        return TwinSupply(
            engine=machine.engine,
            matrix=machine.scene.matrix,
            relock=machine.relock,
            arms=dict.fromkeys(self.sides, MixedArm(row=self.row, other=self.row)),
        )

    def play(self, lab: Lab) -> list[Sample]:
        """Take runs until so many turns have a valid one of both sides."""
        (load,) = self.loads(lab.scene)
        rounds = Rounds(missing=whole_runs(self.sides, self.runs), keeps=self.keeps)
        with lab.rows(self, load) as runs:
            runs.refuse_failed()
            return runs.fresh(load, self.sides, rounds)


@dataclass(frozen=True, kw_only=True)
class TwinSupply(ArmSupply):
    """The same row under two names."""

    def left(self) -> tuple[str, ...]:
        return tuple(self.arms)[1:]
