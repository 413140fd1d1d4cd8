"""Search one series with one or more workloads: one boundary for each line and workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dsbisect.rows.rows_request import RowsRequest
from dsbisect.search_options import SearchOptions
from dsharness.containers.engine import Engine
from dsharness.model import Campaign, Image, Matrix, Sample, Settings, Workload
from dslab.campaign_loop import (
    SampleSource,
    answered_before,
    run_campaign,
    unfinished,
)
from dslab.candidates import RowSupply
from dslab.lab_plan import LabPlan
from dslab.laboratory import open_lab
from dslab.watcher import Watcher
from dsresults.store import Store
from dssearch.bayes.prior import Belief
from dssearch.question import Question, Search
from dssearch.search_loop import Rounds

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
SURVEY = 6  # rows of a short line are all measured: a report has a figure for each


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
    plan = LabPlan.on(
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
        plan, supply, rows, engine=engine, store=store, watcher=watcher, questions=questions
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
    return options.search(workload, survey_up_to=SURVEY, belief=ROWS, prior=suspects)


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
    plan = LabPlan.on(
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
        plan, supply, [request.row],
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
