"""Every question that one can ask of rows, with what each option means.

What plays a study is imported when it is played: `--help` imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import typer
from pydantic import Field, model_validator

from dsbisect.cli.common_options import DEFAULT_METRIC, MetricName, WorkloadNames
from dsbisect.comparison_question import Compare
from dsbisect.difference_question import Explain
from dsbisect.study import Numbers, Phases, SearchStudy, Study, StudyKind
from dsbisect.timeline_question import Timeline
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.rows_study import Findings, RowsRequest
    from dsbisect.study_lab import Answer, Lab, Scene
    from dsharness.model import CampaignKind, Value, Workload

RowNames = Annotated[
    tuple[str, ...],
    typer.Argument(
        metavar="ROW...",
        help="Rows to measure: `dsbisect list rows` has all. The others are compared with the "
        "first.",
        show_default=False,
    ),
]


class Rows(SearchStudy):
    """Find where fast turns slow along a series of rows.

    Example: dsbisect bisect rows debian-11..debian-13 --workload bind-one

    Example: dsbisect bisect rows debian --workload bind-one
    --on postgresql://lab@db.example.org/dsbisect --machines 2..4
    """

    kind: ClassVar[StudyKind] = "rows"

    between: Annotated[
        str | None,
        typer.Argument(metavar="GOOD..BAD|SERIES", help="Both ends as one word, or a series."),
    ] = None
    series: Annotated[
        str | None, typer.Option("--series", help="The series to search. Default: the matrix's.")
    ] = None
    good: Annotated[
        str | None, typer.Option("--good", help="Row to start at; default: the first.")
    ] = None
    bad: Annotated[str | None, typer.Option("--bad", help="Row to end at; default: the last.")] = (
        None
    )
    workload: WorkloadNames = ()

    @property
    def runs_kind(self) -> CampaignKind:
        return "levels"  # of what its rows answer in a closed loop

    def request(self, scene: Scene) -> RowsRequest:
        """Return what its words stand for."""
        from dsbisect.rows_study import rows_request

        return rows_request(self, scene)

    def names(self, scene: Scene) -> tuple[str, ...]:
        return self.request(scene).rows

    def questions(self, scene: Scene) -> int:
        return len(self.request(scene).questions)

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.capacity import without_shares

        return without_shares(self.request(scene).workloads, self.metric)

    def play(self, lab: Lab) -> Findings:
        from dsbisect.rows_study import play_rows

        return play_rows(self, lab)


class Levels(Study):
    """Measure rows under rising load: latency and rate of each level, and the knee.

    Example: dsbisect measure levels debian-12 debian-13 --workload session --levels 50,90,110

    Example: dsbisect measure levels debian-12 --workload session --rates 600,1200,1800 --json
    """

    kind: ClassVar[StudyKind] = "levels"

    rows: RowNames
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A workload that can have a schedule, or a YAML file with one; W@N: with N users.",
        ),
    ]
    shares_pct: Annotated[
        tuple[float, ...] | None,
        typer.Option(
            "--levels",
            metavar="PCT,...",
            help="Levels, in per cent of what the slowest row answers. Default: "
            "25,50,75,90,100,110.",
            # above 200 % a run could not end in time
            parser=Numbers(option="--levels", noun="level", least=1, most=200, example="50,90"),
        ),
    ] = None
    rates: Annotated[
        tuple[float, ...] | None,
        typer.Option(
            "--rates",
            metavar="N,...",
            help="Levels in operations a second, instead of --levels.",
            parser=Numbers(
                option="--rates", noun="level", least=0.1, most=100_000, example="600,1200"
            ),
        ),
    ] = None
    runs: Annotated[
        int, Field(ge=1, le=100), typer.Option("--runs", help="Valid runs of each row and level.")
    ] = 5

    @model_validator(mode="after")
    def _shares_or_rates(self) -> Self:
        if self.shares_pct is not None and self.rates is not None:
            raise UsageError(
                "--levels and --rates: one of them is too much",
                hint="--levels takes per cent of the capacity, --rates operations a second",
            )
        return self

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return self.rows

    @property
    def decider(self) -> str:
        return "latency-p99"

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.load_levels import LoadLevels

        return LoadLevels

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.capacity import closed_loop

        return (closed_loop(scene.workload(self.workload)),)

    def play(self, lab: Lab) -> Answer:
        from dsbisect.levels_study import play_levels

        return play_levels(self, lab)


class Sizes(Study):
    """Measure rows on directories of several sizes: how their cost grows, and whose grows more.

    Example: dsbisect measure sizes debian-12 debian-13 --workload search-candidates

    Example: dsbisect measure sizes debian-13 --workload session --sizes 1000,30000 --metric memory
    """

    kind: ClassVar[StudyKind] = "sizes"

    rows: RowNames
    workload: Annotated[
        str,
        typer.Option(
            "--workload", help="A workload on a directory's users, or a YAML file with one."
        ),
    ]
    sizes: Annotated[
        tuple[int, ...],
        typer.Option(
            "--sizes",
            metavar="N,...",
            help="Users of the directory, up to 9999999. Default: 1000,10000,100000.",
            parser=Numbers(
                option="--sizes",
                noun="number of users",
                least=1,
                most=9_999_999,
                fewest=2,
                many=10,
                example="1000,10000,100000",
            ),
        ),
    ] = (1000, 10_000, 100_000)
    metric: MetricName = DEFAULT_METRIC
    runs: Annotated[
        int, Field(ge=2, le=100), typer.Option("--runs", help="Valid runs of each row and size.")
    ] = 5

    @model_validator(mode="after")
    def _no_size_of_its_own(self) -> Self:
        if self.workload.rpartition("@")[2].isdecimal():
            raise UsageError(
                f"--workload {self.workload} has a size of its own",
                hint=f"name it without one; the sizes are those of --sizes "
                f"{','.join(map(str, self.sizes))}",
            )
        return self

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return self.rows

    @property
    def decider(self) -> str:
        return self.metric

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.size_growth import SizeGrowth

        return SizeGrowth

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.sizes_study import sized_loads

        return sized_loads(self, scene)

    def play(self, lab: Lab) -> Answer:
        from dsbisect.sizes_study import play_sizes

        return play_sizes(self, lab)


class Endurance(Study):
    """Load a row for a long time in phases: no operation may fail; drifts of latency and memory.

    Example: dsbisect measure endurance debian-12 --workload search-as-user

    Example: dsbisect measure endurance debian-13 --workload session --minutes 480 --top 80
    """

    kind: ClassVar[StudyKind] = "endurance"

    row: Annotated[
        str,
        typer.Argument(
            metavar="ROW",
            help="Row to measure: `dsbisect list rows` has all.",
            show_default=False,
        ),
    ]
    workload: Annotated[
        str,
        typer.Option(
            "--workload",
            help="A workload that only reads and can have a schedule, or a YAML file with one.",
        ),
    ]
    minutes: Annotated[
        float,
        Field(ge=1, le=10_080),
        typer.Option("--minutes", help="All phases together; 480: 8 hours."),
    ] = 5.0
    phases: Annotated[
        tuple[tuple[float, float], ...],
        typer.Option(
            "--phases",
            metavar="PCT:PART,...",
            help="Per cent of the top rate, and the part of the time, of each phase. Default: "
            "100:60,67:30,33:300,100:60,67:30, as published.",
            parser=Phases(),
        ),
    ] = ((100, 60), (67, 30), (33, 300), (100, 60), (67, 30))
    # of the published test: eight hours at 1800, 1200, 600, 1800 and 1200 users
    top_pct: Annotated[
        float | None,
        Field(ge=1, le=100),
        typer.Option(
            "--top", help="The top rate, in per cent of what the row answers. Default: 60."
        ),
    ] = None
    rate: Annotated[
        float | None,
        Field(ge=0.1, le=100_000),
        typer.Option("--rate", help="The top rate in operations a second, not --top."),
    ] = None

    @model_validator(mode="after")
    def _top_or_rate(self) -> Self:
        if self.top_pct is not None and self.rate is not None:
            raise UsageError(
                "--top and --rate: one of them is too much",
                hint="--top takes per cent of what the row answers, --rate operations a second",
            )
        return self

    @property
    def alone(self) -> str:
        return "the same server bears all of it"

    def names(self, scene: Scene) -> tuple[str, ...]:
        del scene
        return (self.row,)

    @property
    def decider(self) -> str:
        return "latency-p99"

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.compare.endured_phases import Endurance as Endured

        return Endured

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.endurance_study import reading_load

        return (reading_load(scene.workload(self.workload)),)

    def play(self, lab: Lab) -> Answer:
        from dsbisect.endurance_study import play_endurance

        return play_endurance(self, lab)


class Schemes(Study):
    """Measure every password scheme that rows offer: what is stored, a bind's cost, OWASP's word.

    Example: dsbisect measure schemes debian-12 debian-13

    Example: dsbisect measure schemes debian-13 --scheme PBKDF2-SHA512 --scheme SSHA512 --json
    """

    kind: ClassVar[StudyKind] = "schemes"

    rows: Annotated[
        tuple[str, ...],
        typer.Argument(metavar="ROW...", help="Default: those of the default series."),
    ] = ()
    schemes: Annotated[
        tuple[str, ...],
        typer.Option("--scheme", help="Repeatable: only this one. Default: all that are offered."),
    ] = ()
    runs: Annotated[
        int, Field(ge=1, le=1000), typer.Option("--runs", help="Valid runs of each scheme.")
    ] = 3
    users: Annotated[
        int,
        Field(ge=2, le=100_000),
        typer.Option(
            "--users",
            help="Users that bind, at random; more where a library keeps results of a scheme.",
        ),
    ] = 200

    def names(self, scene: Scene) -> tuple[str, ...]:
        return self.rows or scene.default_rows

    @classmethod
    def answer_type(cls) -> type[Value]:
        from dsresults.explainers.scheme_costs import SchemeTable

        return SchemeTable

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        from dsbisect.schemes_study import refuse_passwordless

        return refuse_passwordless(self, scene)

    def play(self, lab: Lab) -> Answer:
        from dsbisect.schemes_study import SchemesPlay

        return SchemesPlay(study=self, lab=lab).table()


STUDIES: dict[StudyKind, type[Study]] = {
    study.kind: study
    for study in (Rows, Levels, Sizes, Endurance, Schemes, Explain, Compare, Timeline)
}
