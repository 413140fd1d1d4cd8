"""What is asked of all releases of a repository: since when is which slower, under each load.

What plays it is imported when it is played: `--help` imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import typer
from pydantic import Field, model_validator

from dsbisect.cli.common_options import in_clone, outside
from dsbisect.study import StudyKind, SuiteStudy
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.study_lab import Answer, Lab, Scene, ThisMachine
    from dsbisect.timeline_sources import TimelineSources
    from dsharness.model import CampaignKind, Value, Workload
    from dslab.candidates import Supply


class Timeline(SuiteStudy):
    """Measure a repository's releases under every load of a suite: since when is which slower.

    The ends of a stretch come first; what lies between is built only where they differ. The same
    command goes on where it was interrupted, and after a new release.

    Example: dsbisect timeline 1.4.4.0.. --repo ~/src/server

    Example: dsbisect timeline 3.0.1..3.2.2 --by-series --workload search-candidates
    """

    kind: ClassVar[StudyKind] = "timeline"

    between: Annotated[
        str,
        typer.Argument(
            metavar="[FIRST]..[LAST]",
            help="Releases, or a revision as the last. Default: from the oldest to HEAD.",
        ),
    ] = ".."
    repository: Annotated[
        str,
        typer.Option(
            "--repo",
            help="Checkout, bare repository or URL; it is only read. Default: the one that you "
            "stand in.",
            show_default=False,
        ),
    ] = "."
    by_series: Annotated[
        bool,
        typer.Option(
            "--by-series",
            help="Only the first release of each series; otherwise each series is followed to its "
            "last one, too.",
        ),
    ] = False
    smallest: Annotated[
        float,
        Field(gt=0, le=100),
        typer.Option("--smallest", help="Steps below this, in per cent, are not looked for."),
    ] = 10.0
    max_runs: Annotated[
        int,
        Field(ge=4, le=2000),
        typer.Option("--max-runs", help="Of each stretch under one load, at most."),
    ] = 200

    @model_validator(mode="after")
    def _two_ends(self) -> Self:
        if self.between.count("..") != 1 or "..." in self.between:
            raise UsageError(
                f"{self.between}: not a range of releases",
                hint="write FIRST..LAST, such as 3.0.1..3.2.2; either end may be left out",
            )
        return self

    @property
    def alone(self) -> str:
        return f"{self.repository} is read here"

    @property
    def search_kind(self) -> CampaignKind:
        return "timeline"

    def placed(self, scene: Scene) -> Self:
        del scene
        if self.repository == "." and not in_clone():
            raise UsageError(
                "this folder is no repository",
                hint="--repo PATH says whose releases they are",
            )
        return self

    @property
    def uses_folder(self) -> bool:
        return outside(self.repository)

    def sources(self, scene: Scene) -> TimelineSources:
        """Return the releases; the repository is opened once."""
        from dsbisect.timeline_sources import TimelineSources

        return scene.once("made", lambda: TimelineSources.of(self, scene))

    def names(self, scene: Scene) -> tuple[str, ...]:
        """Both ends: what lies between is prepared when it is asked for."""
        return self.sources(scene).ends

    def matrix_rows(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return ()

    def supply(self, machine: ThisMachine) -> Supply | None:
        return self.sources(machine.scene).supply(machine.engine)

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.release_timeline import ReleaseTimeline

        return ReleaseTimeline

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.timeline_study import suite_of_releases

        return tuple(judged.load for judged in suite_of_releases(self, scene))

    def play(self, lab: Lab) -> Answer:
        from dsbisect.timeline_study import play_timeline

        return play_timeline(self, lab)
