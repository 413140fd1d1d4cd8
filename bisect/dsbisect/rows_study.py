"""A search of one series with one or more workloads: one boundary for each line and workload.

The question of a user about rows says whether there is anything to search, with no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsbisect.capacity import at_shares
from dsbisect.search_options import SearchOptions
from dsharness.containers.engine import Engine
from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import find_series
from dsharness.matrix.series_graph import chains, graph_of
from dsharness.measure.metrics import find_metric
from dsharness.model import DECIDER, Campaign, Image, Matrix, Sample, Series, Settings, Workload
from dsharness.yaml_files.problems import suggestion
from dslab.candidates import RowSupply, Supply
from dslab.lab_conditions import LabConditions
from dslab.laboratory import Laboratory, open_lab
from dslab.observer import Observer
from dsresults.profile_pair import ProfilePair, stored_profiles
from dsresults.store import Store
from dssearch.bayes.prior import Belief, scatters
from dssearch.question import Question, Search

if TYPE_CHECKING:
    from dsbisect.studies import Rows
    from dsbisect.study_lab import Lab, Scene


@dataclass(frozen=True, kw_only=True)
class RowsAsked:
    """The part of a user's question that is the same for every use of rows."""

    matrix: Matrix
    workloads: tuple[Workload, ...]
    settings: Settings
    metric: str = DECIDER
    relock: bool = False
    keep: bool = False
    profile: bool = False  # of both sides of what is found


@dataclass(frozen=True, kw_only=True)
class RowsRequest(RowsAsked):
    """Where along a series a user asks for the step."""

    series: Series
    good: str | None = None
    bad: str | None = None

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The lines to search, cut to good..bad; each at least two candidates long."""
        all_lines = chains(self.series)
        cut = (_cut(line, self.good, self.bad) for line in all_lines)
        lines = tuple(dict.fromkeys(line for line in cut if len(line) > 1))
        if not lines:
            raise MatrixError(self._why_none(all_lines), hint=self._order(all_lines))
        return lines

    @property
    def rows(self) -> tuple[str, ...]:
        """All that are searched, each once."""
        return tuple(dict.fromkeys(row for line in self.lines for row in line))

    @property
    def questions(self) -> tuple[tuple[Question, Workload], ...]:
        """What is asked of each line with each workload, in this order."""
        return tuple(
            (
                Question(
                    series_id=self.series.id,
                    line=line,
                    workload_id=workload.id,
                    settings_id=self.settings.id,
                    metric=self.metric,
                ),
                workload,
            )
            for workload in self.workloads
            for line in self.lines
        )

    def _why_none(self, all_lines: tuple[tuple[str, ...], ...]) -> str:
        """Why nothing is between good and bad: an unknown name, the wrong order, two branches."""
        names_known = {row for line in all_lines for row in line}
        for name in (self.good, self.bad):
            if name is not None and name not in names_known:
                return (
                    f"series {self.series.id} has no row {name!r}.{suggestion(name, names_known)}"
                )
        if self.good is not None and self.good == self.bad:
            return f"--good and --bad are both {self.good}: a boundary lies between two rows"
        if self.good and self.bad and any(_cut(line, self.bad, self.good) for line in all_lines):
            return f"{self.bad} comes before {self.good} in series {self.series.id}: swapped?"
        return (
            f"series {self.series.id}: nothing to search between "
            f"{self.good or 'its start'} and {self.bad or 'its end'}"
        )

    def _order(self, all_lines: tuple[tuple[str, ...], ...]) -> str:
        graph = f"`dsbisect matrix graph {self.series.id}` shows the order"
        names_known = {row for line in all_lines for row in line}
        if not names_known.issuperset({self.good, self.bad} - {None}):
            graph = f"commits need --repo; {graph}"
        if len(all_lines) == 1:
            return f"{graph}: {', '.join(all_lines[0])}"
        return f"name two rows that follow each other: {graph}"


def rows_request(study: Rows, scene: Scene) -> RowsRequest:
    """What the words of a study stand for; MatrixError for one that stands for nothing."""
    matrix = scene.matrix
    spelled = _spelled(study)
    series = _series_of(matrix, **spelled)
    named = {row for line in chains(series) for row in line}
    systems = (row.system for row in matrix.rows if row.id in named)
    return RowsRequest(
        matrix=matrix,
        series=series,
        workloads=scene.chosen_workloads(study.workload, systems),
        settings=scene.settings(study),
        metric=find_metric(study.metric).name,
        good=spelled["good"],
        bad=spelled["bad"],
    )


def _spelled(study: Rows) -> dict[str, str | None]:
    """Return series, good and bad, however they were spelled; UsageError for both ways at once."""
    options = {"series": study.series, "good": study.good, "bad": study.bad}
    if study.between is None:
        return options
    good, dots, bad = study.between.partition("..")
    words = {"good": good or None, "bad": bad or None} if dots else {"series": good}
    for name in words:
        if options[name] is not None:
            raise UsageError(
                f"{study.between} and --{name}: one of them is too much",
                hint="name GOOD..BAD or a series, or use --good, --bad and --series",
            )
    return {**options, **words}


def _series_of(matrix: Matrix, *, series: str | None, good: str | None, bad: str | None) -> Series:
    """Return the series that is named; else the matrix's, or the first one with both ends."""
    usual = find_series(matrix, series or matrix.defaults.series)
    ends = {good, bad} - {None}
    others = () if series else matrix.series
    holding = (candidate for candidate in (usual, *others) if ends.issubset(graph_of(candidate)))
    return next(holding, usual)


def _cut(line: tuple[str, ...], good: str | None, bad: str | None) -> tuple[str, ...]:
    """The part of a line from good to bad; empty where it holds neither in that order."""
    if (good and good not in line) or (bad and bad not in line):
        return ()
    begin = line.index(good) if good else 0
    end = line.index(bad) if bad else len(line) - 1
    return line[begin : end + 1]


# A row is what a user installs: what it costs is its own, whichever compiler that comes from. From
# one release to the next a per cent or so is usual, and no step.
ROWS = Belief(
    smallest_effect=1.05,
    scatters=scatters((0.005, 0.4), (0.015, 0.6)),
    two=0.2,
    none=0.25,
    odd=0.0,  # each is a release of its own
    of_source=False,  # and what a user installs
)
LEARNED = 20.0  # a step found on another branch is this many times likelier than other places
MEASURE_ALL_UP_TO = 6  # rows of a line: a report has a figure for each


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything a report needs."""

    campaigns: tuple[Campaign, ...]
    samples: tuple[Sample, ...]
    images: dict[str, Image]
    profiles: tuple[ProfilePair, ...] = ()

    @classmethod
    def of(cls, campaigns: Sequence[Campaign], store: Store) -> Findings:
        """What the store holds of these campaigns."""
        samples, images = store.measured_in(campaigns)
        return cls(
            campaigns=tuple(campaigns),
            samples=tuple(samples),
            images=images,
            profiles=stored_profiles(store, (campaign.id for campaign in campaigns)),
        )


def play_rows(study: Rows, lab: Lab) -> Findings:
    """Prepare every row once, then search each line with each workload."""
    request = study.request(lab.scene)
    ends = tuple(dict.fromkeys(end for line in request.lines for end in (line[0], line[-1])))
    with lab.rows(study, *study.loads(lab.scene)) as runs:
        request = replace(request, workloads=at_shares(request.workloads, ends, runs))
        options = replace(study.options, paired=runs.paired)

        def search_for(workload: Workload, answered: Sequence[Campaign]) -> Search:
            return rows_search(options, workload, answered)

        campaigns = runs.searched(request.questions, search_for)
        profiles = runs.profiled(campaigns, request.workloads) if study.profile else ()
        findings = Findings.of(campaigns, lab.store)
        return replace(
            findings,
            images={**findings.images, **runs.images},
            profiles=tuple(profiles) or findings.profiles,
        )


def rows_search(options: SearchOptions, workload: Workload, answered: Sequence[Campaign]) -> Search:
    """Where one branch turned slow is where to look first on others that contain it too."""
    suspects = {
        boundary.after: LEARNED
        for campaign in answered
        if (boundary := campaign.boundary) is not None
        and boundary.found
        and boundary.after is not None
        and campaign.workload_id == workload.id
    }
    return options.search(
        workload, measure_all_up_to=MEASURE_ALL_UP_TO, belief=ROWS, prior=suspects
    )


@contextmanager
def row_lab(
    rows_asked: RowsAsked,
    rows: Sequence[str],
    questions: int,
    *,
    engine: Engine,
    store: Store,
    observer: Observer,
    duet: bool = True,
    supply: Supply | None = None,
) -> Iterator[Laboratory]:
    """A lab in which these rows are prepared, as far as they can be."""
    conditions = LabConditions.on(
        engine,
        matrix=rows_asked.matrix,
        settings=rows_asked.settings,
        workloads=rows_asked.workloads,
        metric=rows_asked.metric,
        duet=duet,
        keep=rows_asked.keep,
    )
    rows_as_asked = RowSupply(engine=engine, matrix=rows_asked.matrix, relock=rows_asked.relock)
    with open_lab(
        conditions,
        supply or rows_as_asked,
        rows,
        engine=engine,
        store=store,
        observer=observer,
        questions=questions,
    ) as laboratory:
        yield laboratory
