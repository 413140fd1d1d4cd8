"""The question what of a difference between two rows comes from what."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer
from pydantic import Field

from dsbisect.cli.common_options import Profiled, WorkloadNames
from dsbisect.study import Study, StudyKind

if TYPE_CHECKING:
    from dsbisect.study_lab import Answer, Lab, Scene, ThisMachine
    from dsharness.model import Value, Workload
    from dslab.candidates import Supply


class Explain(Study):
    """Attribute a difference between two rows to what can be changed alone.

    Each arm is one row's server, with what the other one stores where both can hold it. All are
    measured in turn; stored runs count, and a larger --runs adds to them.

    Example: dsbisect explain debian-12 debian-13 --workload bind-one --runs 8
    """

    kind: ClassVar[StudyKind] = "explain"

    fast: Annotated[str, typer.Argument(help="The row to start from.", show_default=False)]
    slow: Annotated[str, typer.Argument(help="The row that differs.", show_default=False)]
    workload: WorkloadNames = ()
    runs: Annotated[
        int, Field(ge=3, le=1000), typer.Option("--runs", help="Of each arm that shall count.")
    ] = 8
    profile: Profiled = False

    @property
    def profiled(self) -> bool:
        return self.profile

    @property
    def command(self) -> str:
        """The command that asks it."""
        words = ["dsbisect", self.kind, self.fast, self.slow]
        for name in self.workload:
            words += ["--workload", name]
        for name in ("runs", "settings"):
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                words += [f"--{name}", str(value)]
        return shlex.join([*words, "--profile"] if self.profile else words)

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return self.fast, self.slow

    def questions(self, scene: Scene) -> int:
        return len(self.loads(scene))

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.difference_shares import DifferenceShares

        return DifferenceShares

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.explain_study import explained_loads

        return explained_loads(self, scene)

    def pairs(self, scene: Scene) -> bool:
        from dsbisect.explain_study import named_arms

        return len(named_arms(self, scene)) == len(self.names(scene))

    def supply(self, machine: ThisMachine) -> Supply:
        from dsbisect.explain_study import named_arms
        from dsbisect.mixed_arms import MixedSupply

        return MixedSupply(
            engine=machine.engine,
            matrix=machine.scene.matrix,
            relock=machine.relock,
            arms=named_arms(self, machine.scene),
        )

    def play(self, lab: Lab) -> Answer:
        from dsbisect.explain_study import play_explain

        return play_explain(self, lab)
