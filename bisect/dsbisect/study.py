"""What a question is: a value whose fields are what the command line asks for.

A study travels to other machines, its answer is stored with it, and it is played again to resume,
to share, and to prove an old answer. This module is light: `--help` imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, model_validator

from dsbisect.cli.common_options import (
    DEFAULT_METRIC,
    EveryStep,
    Expected,
    Inside,
    Level,
    MaxBuilds,
    MaxHours,
    MaxRuns,
    MetricName,
    Profiled,
    SettingsId,
    Smallest,
    SuiteLoads,
    SuiteMetric,
    Toolchain,
)
from dsbisect.search_options import SEEN_PCT, SEEN_RUNS, SearchOptions
from dsharness.errors import UsageError

if TYPE_CHECKING:
    from dsbisect.study_lab import Lab, Scene, ThisMachine
    from dsharness.model import CampaignKind, Value, Workload
    from dslab.candidates import Supply

StudyKind = Literal[
    "commits",
    "rows",
    "measure",
    "levels",
    "sizes",
    "endurance",
    "schemes",
    "explain",
    "compare",
    "timeline",
]
KeptKind = Literal[
    "levels", "sizes", "endurance", "schemes", "explain", "compare", "timeline"
]  # its answer is more than its campaigns' answers
KEPT: tuple[KeptKind, ...] = get_args(KeptKind)


class Study(BaseModel):
    """One question."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: ClassVar[StudyKind]
    settings: SettingsId = "default"

    @property
    def alone(self) -> str:
        """Why several machines cannot share it; empty: they can."""
        return ""

    @property
    def runs_kind(self) -> CampaignKind:
        """What campaigns of its runs without a search are."""
        return self.kind

    @property
    def search_kind(self) -> CampaignKind:
        """What campaigns of its searches are."""
        return "rows"

    @property
    def profiled(self) -> bool:
        """Whether both sides of what is found are profiled."""
        return False

    def names(self, scene: Scene) -> tuple[str, ...]:
        """Return the rows that are measured."""
        raise NotImplementedError

    def placed(self, scene: Scene) -> Self:
        """Return the same with what it takes from where one stands."""
        del scene
        return self

    @property
    def uses_folder(self) -> bool:
        """Whether the matrix of the folder one stands in is its own."""
        return True

    def matrix_rows(self, scene: Scene) -> tuple[str, ...]:
        """Return those of them that are rows of the matrix."""
        return self.names(scene)

    def pairs(self, scene: Scene) -> bool:
        """Return whether two rows are measured at the same time, where that can be."""
        del scene
        return False

    def supply(self, machine: ThisMachine) -> Supply | None:
        """Return what makes the servers, where they are more than those of rows."""
        del machine
        return None

    def questions(self, scene: Scene) -> int:
        """Return how many answers a lab is asked for, as far as that is known before."""
        del scene
        return 1

    @property
    def decider(self) -> str:
        """The metric that is looked at."""
        return DEFAULT_METRIC

    @classmethod
    def answer_type(cls) -> type[Value]:
        """Return the type of its answers."""
        raise NotImplementedError

    def refuses(self, answer: Any) -> bool:  # noqa: ANN401 - of a type of its own
        """Return whether the answer is no, where a study asks whether something may be."""
        del answer
        return False

    def files(self, answer: Any) -> Mapping[str, str]:  # noqa: ANN401
        """Return further forms of an answer for its folder, by their names."""
        del answer
        return {}

    def loads(self, scene: Scene) -> tuple[Workload, ...]:
        """Return the load of each lab, in order; refuse what can never be measured."""
        raise NotImplementedError

    def play(self, lab: Lab) -> Any:  # noqa: ANN401 - of a type of its own
        """Ask the lab, and answer: the same from the same stored runs."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """Reads numbers with commas between them, each once and in order."""

    option: str
    noun: str
    least: float
    most: float
    fewest: int = 1
    many: int = 20
    example: str

    def __call__(self, text: str) -> tuple[float, ...]:
        hint = (
            f"write {self.fewest} to {self.many} numbers from {self.least:g} to {self.most:.9g}, "
            f"such as {self.option} {self.example}"
        )
        try:
            values = sorted({float(word) for word in text.split(",")})
        except ValueError as error:
            why = f"{self.option} {text}: not numbers with commas between"
            raise UsageError(why, hint=hint) from error
        for value in values:
            if not self.least <= value <= self.most:
                raise UsageError(f"{self.option} {text}: {value:.9g} is no {self.noun}", hint=hint)
        if not self.fewest <= len(values) <= self.many:
            raise UsageError(f"{self.option} {text}: {len(values)} given", hint=hint)
        return tuple(values)


@dataclass(frozen=True, kw_only=True)
class Phases:
    """Reads shares of a top rate, from 1 to 100 %, with the part of the time of each."""

    many: int = 20

    def __call__(self, text: str) -> tuple[tuple[float, float], ...]:
        hint = f"write up to {self.many} pairs of numbers, such as --phases 100:1,50:4,100:1"
        try:
            pairs = [[float(number) for number in word.split(":")] for word in text.split(",")]
            phases = tuple((share, part) for share, part in pairs)
        except ValueError as error:
            raise UsageError(f"--phases {text}: not pairs of numbers", hint=hint) from error
        for share, part in phases:
            if not (1 <= share <= 100 and 0 < part < 1e6):
                raise UsageError(f"--phases {text}: {share:g}:{part:g} is no phase", hint=hint)
        if len(phases) > self.many:
            raise UsageError(f"--phases: {len(phases)} phases are too many", hint=hint)
        return phases


class SearchStudy(Study):
    """A question with a search: what it looks at, how sure its answer must be, for which budget."""

    metric: MetricName = DEFAULT_METRIC
    level: Level = SearchOptions.level
    max_runs: MaxRuns = SearchOptions.max_runs
    max_builds: MaxBuilds = None
    max_hours: MaxHours = None
    smallest: Smallest = None
    expected: Expected = None
    inside: Inside = 0
    every: EveryStep = False
    profile: Profiled = False

    def pairs(self, scene: Scene) -> bool:
        del scene
        return True

    @model_validator(mode="after")
    def _refuse_wrong_options(self) -> Self:
        _ = self.options
        return self

    @property
    def options(self) -> SearchOptions:
        """How to search; UsageError for what cannot be meant."""
        return self.search_options()

    def search_options(self, scatter_pct: float | None = None) -> SearchOptions:
        """Return the same, where it is known by how much builds of one source differ.

        "No difference" waits until the smallest one that matters would have been seen; by default
        10 %, and no longer than some minutes. Who expects a larger one wants an early end.
        """
        usual = self.smallest is None and self.expected is None
        return SearchOptions(
            seen_pct=SEEN_PCT if usual else self.smallest,
            seen_runs=SEEN_RUNS if usual else None,
            scatter_pct=scatter_pct,
            level=self.level,
            max_runs=self.max_runs,
            max_builds=self.max_builds,
            max_hours=self.max_hours,
            smallest_pct=self.smallest,
            expected_pct=self.expected,
            inside=self.inside,
            every=self.every,
        )

    @property
    def decider(self) -> str:
        return self.metric

    @property
    def profiled(self) -> bool:
        return self.profile


class SuiteStudy(Study):
    """A question under every load of a suite, of servers that may be built from a repository."""

    toolchain: Toolchain = None
    workload: SuiteLoads = ()
    metric: SuiteMetric = None

    @model_validator(mode="after")
    def _metric_of_a_load(self) -> Self:
        if self.metric is not None and not self.workload:
            raise UsageError(
                f"--metric {self.metric} needs a --workload",
                hint="the suite has metrics of its own for each load",
            )
        return self

    def pairs(self, scene: Scene) -> bool:
        del scene
        return True
