"""A search of one series with one or more workloads: one boundary for each line and workload.

The question of a user about rows says whether there is anything to search, with no I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsbisect.search_options import SearchOptions
from dsharness.containers.engine import Engine
from dsharness.errors import MatrixError
from dsharness.matrix.series_graph import chains
from dsharness.model import DECIDER, Campaign, Image, Matrix, Sample, Series, Settings, Workload
from dsharness.yaml_files.problems import suggestion
from dslab.campaign_loop import (
    SampleSource,
    answered_before,
    run_campaign,
    unfinished,
)
from dslab.candidates import RowSupply
from dslab.lab_conditions import LabConditions
from dslab.laboratory import open_lab
from dslab.watcher import Watcher
from dsresults.store import Store
from dssearch.bayes.prior import Belief
from dssearch.question import Question, Search
from dssearch.search_loop import Rounds


@dataclass(frozen=True, kw_only=True)
class RowsRequest:
    """A user's question about rows."""

    matrix: Matrix
    series: Series
    workloads: tuple[Workload, ...]
    settings: Settings
    metric: str = DECIDER
    good: str | None = None
    bad: str | None = None
    relock: bool = False
    keep: bool = False

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The lines to search, cut to good..bad; each at least two candidates long."""
        whole = chains(self.series)
        cut = (_cut(line, self.good, self.bad) for line in whole)
        lines = tuple(dict.fromkeys(line for line in cut if len(line) > 1))
        if not lines:
            raise MatrixError(self._why_none(whole), hint=self._order(whole))
        return lines

    def _why_none(self, whole: tuple[tuple[str, ...], ...]) -> str:
        """Why nothing is between good and bad: an unknown name, the wrong order, two branches."""
        known = {row for line in whole for row in line}
        for name in (self.good, self.bad):
            if name is not None and name not in known:
                return f"series {self.series.id} has no row {name!r}.{suggestion(name, known)}"
        if self.good is not None and self.good == self.bad:
            return f"--good and --bad are both {self.good}: a boundary lies between two rows"
        if self.good and self.bad and any(_cut(line, self.bad, self.good) for line in whole):
            return f"{self.bad} comes before {self.good} in series {self.series.id}: swapped?"
        return (
            f"series {self.series.id}: nothing to search between "
            f"{self.good or 'its start'} and {self.bad or 'its end'}"
        )

    def _order(self, whole: tuple[tuple[str, ...], ...]) -> str:
        graph = f"`dsbisect matrix graph {self.series.id}` shows the order"
        if len(whole) == 1:
            return f"{graph}: {', '.join(whole[0])}"
        return f"name two rows that follow each other: {graph}"


def _cut(line: tuple[str, ...], good: str | None, bad: str | None) -> tuple[str, ...]:
    """The part of a line from good to bad; empty where it holds neither in that order."""
    if (good and good not in line) or (bad and bad not in line):
        return ()
    begin = line.index(good) if good else 0
    end = line.index(bad) if bad else len(line) - 1
    return line[begin : end + 1]


# Rows come from different compilers and libraries, and there is one build of each: what is below a
# fifth could be that. Asked for a tenth, two equal rows end undecided in most runs.
ROWS = Belief(
    smallest_effect=1.25,
    scatters=((0.02, 0.3), (0.05, 0.6), (0.1, 0.1)),
    two=0.2,
    none=0.25,
    odd=0.0,  # each is a release of its own
)
LEARNED = 20.0  # a step found on another branch is this many times likelier than other places
MEASURE_ALL_UP_TO = 6  # rows of a line: a report has a figure for each


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Everything a report needs."""

    campaigns: tuple[Campaign, ...]
    samples: tuple[Sample, ...]
    images: dict[str, Image]


def run_study(
    request: RowsRequest,
    *,
    engine: Engine,
    store: Store,
    watcher: Watcher,
    options: SearchOptions | None = None,
) -> Findings:
    """Prepare every row once, then search each line with each workload."""
    lines = request.lines
    rows = tuple(dict.fromkeys(row for line in lines for row in line))
    conditions = LabConditions.on(
        engine,
        matrix=request.matrix,
        settings=request.settings,
        workloads=request.workloads,
        metric=request.metric,
        keep=request.keep,
    )
    supply = RowSupply(engine=engine, matrix=request.matrix, relock=request.relock)
    questions = len(lines) * len(request.workloads)
    with open_lab(
        conditions, supply, rows, engine=engine, store=store, watcher=watcher, questions=questions
    ) as laboratory:
        how = replace(options or SearchOptions(), paired=laboratory.paired)
        campaigns = _answer_all(request, laboratory, store, watcher, how)
        images = laboratory.images
    samples = [
        sample for campaign in campaigns for sample in store.samples(campaign_id=campaign.id)
    ]
    return Findings(campaigns=tuple(campaigns), samples=tuple(samples), images=images)


def _answer_all(
    request: RowsRequest, lab: SampleSource, store: Store, watcher: Watcher, options: SearchOptions
) -> list[Campaign]:
    """One campaign for each question; answers of an interrupted run are kept."""
    asked: list[tuple[Question, Workload]] = [
        (
            Question(
                series_id=request.series.id,
                line=line,
                workload_id=workload.id,
                settings_id=request.settings.id,
                metric=request.metric,
            ),
            workload,
        )
        for workload in request.workloads
        for line in request.lines
    ]
    campaigns: list[Campaign] = []
    for number, (question, workload) in enumerate(asked):
        search = _search(options, workload, campaigns)
        later = (unfinished(*one, search, lab, store) for one in asked[number + 1 :])
        left = next((campaign for campaign in later if campaign is not None), None)
        known = left and answered_before(left.started_at, question, workload, search, lab, store)
        if known and known.boundary and not unfinished(question, workload, search, lab, store):
            watcher.resumed(known, len(store.samples(campaign_id=known.id)))
            watcher.answered(known.boundary)
            campaigns.append(known)
            continue
        campaigns.append(
            run_campaign(question, workload, search=search, lab=lab, store=store, listener=watcher)
        )
    return campaigns


def _search(options: SearchOptions, workload: Workload, answered: Sequence[Campaign]) -> Search:
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


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """What to measure, and how often."""

    matrix: Matrix
    row: str
    workloads: tuple[Workload, ...]
    settings: Settings
    samples: int
    relock: bool = False
    keep: bool = False


def measure_row(
    request: MeasureRequest, engine: Engine, store: Store, watcher: Watcher
) -> list[Sample]:
    """Prepare the row and measure it; what was interrupted continues."""
    conditions = LabConditions.on(
        engine,
        matrix=request.matrix,
        settings=request.settings,
        workloads=request.workloads,
        duet=False,
        keep=request.keep,
    )
    supply = RowSupply(engine=engine, matrix=request.matrix, relock=request.relock)
    taken: list[Sample] = []
    with open_lab(
        conditions, supply, [request.row],
        engine=engine, store=store, watcher=watcher, questions=len(request.workloads),
    ) as laboratory:  # fmt: skip
        if request.row in laboratory.failures:
            raise laboratory.failures[request.row]
        for workload in request.workloads:
            question = Question(
                series_id=request.row,
                line=(request.row,),
                workload_id=workload.id,
                settings_id=request.settings.id,
            )
            campaign = run_campaign(
                question, workload, search=Rounds.of(request.samples),
                lab=laboratory, store=store, listener=watcher, kind="measure",
            )  # fmt: skip
            taken += store.samples(campaign_id=campaign.id)
    return taken
