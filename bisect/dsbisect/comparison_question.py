"""What is asked of two rows: in what is the second one slower.

What plays it is imported when it is played: `--help` imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import typer
from pydantic import Field, model_validator

from dsbisect.study import Study, StudyKind
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.study_lab import Answer, Lab, Scene
    from dsharness.model import CampaignKind, Value, Workload


class Compare(Study):
    """Compare two rows under every load of a suite, and say in what the second one is slower.

    Status 1: it is slower by more than --margin under a load.

    Example: dsbisect compare debian-12 debian-13

    Example: dsbisect compare debian-12 debian-13 --workload bind-one --workload connect --margin 2
    """

    kind: ClassVar[StudyKind] = "compare"
    alone: ClassVar[str] = "its loads need several labs"

    first: Annotated[
        str,
        typer.Argument(
            metavar="FIRST",
            help="Row to compare with: `dsbisect list rows` has all.",
            show_default=False,
        ),
    ]
    second: Annotated[
        str,
        typer.Argument(metavar="SECOND", help="The row that may be slower.", show_default=False),
    ]
    workload: Annotated[
        tuple[str, ...],
        typer.Option(
            "--workload",
            help="Repeatable: only this load, or a YAML file with one; W@N: with N users. Default: "
            "the matrix's suite, as far as both can answer it.",
        ),
    ] = ()
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", help="That every --workload is judged by. Default: those of the suite."
        ),
    ] = None
    margin: Annotated[
        float,
        Field(gt=0, le=100),
        typer.Option("--margin", help="What is less, in per cent, is the same."),
    ] = 5.0
    max_runs: Annotated[
        int,
        Field(ge=4, le=2000),
        typer.Option("--max-runs", help="Of both rows under one load, at most."),
    ] = 80
    minutes: Annotated[
        float | None,
        Field(gt=0, le=10_080),
        typer.Option(
            "--minutes",
            help="For all runs, shared out evenly: what is not told by then stays open.",
        ),
    ] = None

    @model_validator(mode="after")
    def _two_rows(self) -> Self:
        if self.first == self.second:
            raise UsageError(
                f"{self.first} is both rows: they are the same",
                hint="`dsbisect doctor --noise` measures a row against itself",
            )
        if self.metric is not None and not self.workload:
            raise UsageError(
                f"--metric {self.metric} needs a --workload",
                hint="the suite has metrics of its own for each load",
            )
        return self

    @property
    def search_kind(self) -> CampaignKind:
        return "compare"

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return (self.first, self.second)

    def pairs(self, scene: Scene) -> bool:
        del scene
        return True

    def questions(self, scene: Scene) -> int:
        return len(self.loads(scene))

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.compared_loads import ComparedLoads

        return ComparedLoads

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.compare_study import suite_of

        return tuple(judged.load for judged in suite_of(self, scene))

    def play(self, lab: Lab) -> Answer:
        from dsbisect.compare_study import play_compare

        return play_compare(self, lab)
