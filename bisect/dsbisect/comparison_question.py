"""What is asked of two rows or two sources: in what is the second one slower.

What plays it is imported when it is played: `--help` imports this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import typer
from pydantic import Field, model_validator

from dsbisect.cli.common_options import in_clone, outside
from dsbisect.study import StudyKind, SuiteStudy
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.compared_sources import TwoMade
    from dsbisect.study_lab import Answer, Lab, Scene, ThisMachine
    from dsharness.model import CampaignKind, Value, Workload
    from dslab.candidates import Supply
    from dsresults.compare.compared_loads import ComparedLoads

STOCK = "stock"  # what a row has of itself


class Compare(SuiteStudy):
    """Compare two of anything under every load of a suite: in what is the second one slower.

    Each is a row; or, in a repository, a revision, a release such as 3.1.2, or a pull request,
    which is compared with where it parted. ROW stock PACKAGES: with its own, and with these.
    Status 1: slower by more than --margin under a load.

    Example: dsbisect compare debian-12 debian-13

    Example: dsbisect compare 3.1.1 3.1.2 --repo ~/src/server

    Example: dsbisect compare main pull/7665 --workload bind-one --margin 2

    Example: dsbisect compare HEAD --patch fix.patch

    Example: dsbisect compare debian-13 stock ./my-packages/
    """

    kind: ClassVar[StudyKind] = "compare"

    first: Annotated[
        str,
        typer.Argument(
            metavar="FIRST",
            help="What is compared with: a row (`dsbisect list rows` has all), or a revision.",
            show_default=False,
        ),
    ]
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="SECOND",
            help="What may be slower; with --patch it is left out.",
            show_default=False,
        ),
    ] = None
    packages: Annotated[
        Path | None,
        typer.Argument(
            metavar="PACKAGES",
            help="After `stock`: a package or a folder of them, to install over the row's own.",
            show_default=False,
        ),
    ] = None
    repository: Annotated[
        str | None,
        typer.Option(
            "--repo",
            help="Checkout, bare repository or URL; it is only read. Default: the one that you "
            "stand in, unless both are rows.",
            show_default=False,
        ),
    ] = None
    patch: Annotated[
        Path | None,
        typer.Option("--patch", help="Compare FIRST with itself and this patch file, -p1."),
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
                f"{self.first} is both of them: they are the same",
                hint="`dsbisect doctor --noise` measures a row against itself",
            )
        if (self.second is None) == (self.patch is None):
            raise UsageError(
                "nothing to compare with" if self.second is None else "--patch with two revisions",
                hint="name two of them, or one and --patch FILE",
            )
        if (self.second == STOCK) != (self.packages is not None):
            raise UsageError(
                f"{self.packages}: packages are compared with {STOCK}"
                if self.packages
                else f"{STOCK}: no packages are named that it could be compared with",
                hint=f"such as `dsbisect compare debian-13 {STOCK} ./my-packages/`",
            )
        return self

    @property
    def alone(self) -> str:
        if self.packages is not None:
            return f"{self.packages} is on this one"
        return f"{self.repository} is read here" if self.repository is not None else ""

    @property
    def search_kind(self) -> CampaignKind:
        return "compare"

    def placed(self, scene: Scene) -> Self:
        """In a repository, what is no row is a revision of it."""
        if self.packages is not None:
            return self
        rows = {row.id for row in scene.matrix.rows}
        named = {self.first} if self.second is None else {self.first, self.second}
        if self.repository is not None or (named <= rows and self.patch is None):
            return self
        if in_clone():
            return self.model_copy(update={"repository": "."})
        if named & rows and self.patch is None:
            return self  # the other one is refused, with what it may have meant
        raise UsageError(
            f"{' and '.join(sorted(named))}: no rows of the matrix, and this folder is no "
            "repository",
            hint="`dsbisect list rows` has all rows; --repo PATH says whose revisions they are",
        )

    @property
    def uses_folder(self) -> bool:
        return self.repository is None or outside(self.repository)

    def made(self, scene: Scene) -> TwoMade | None:
        """Return both, where they are sources or packages; opened once."""
        from dsbisect.compared_packages import TwoPackages
        from dsbisect.compared_sources import TwoSources

        if self.repository is None and self.packages is None:
            return None
        packages = self.packages

        def both() -> TwoMade:
            if packages is None:
                return TwoSources.of(self, scene)
            return TwoPackages.of(scene.matrix, scene.settings(self), self.first, packages)

        return scene.once("made", both)

    def names(self, scene: Scene) -> tuple[str, ...]:
        made = self.made(scene)
        return made.names if made else (self.first, self.second or "")

    def matrix_rows(self, scene: Scene) -> tuple[str, ...]:
        if self.packages is not None:
            return (self.first,)
        return () if self.repository else self.names(scene)

    def supply(self, machine: ThisMachine) -> Supply | None:
        made = self.made(machine.scene)
        return made.supply(machine.engine) if made else None

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.compared_loads import ComparedLoads

        return ComparedLoads

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.compare_study import suite_of

        return tuple(judged.load for judged in suite_of(self, scene))

    def refuses(self, answer: ComparedLoads) -> bool:
        return answer.refused

    def files(self, answer: ComparedLoads) -> Mapping[str, str]:
        return answer.files

    def play(self, lab: Lab) -> Answer:
        from dsbisect.compare_study import play_compare

        return play_compare(self, lab)
