"""Some samples of one row, without a search: for `measure`, and for the noise of a plan."""

from __future__ import annotations

from dataclasses import dataclass

from dsbisect.lab.campaign_loop import run_campaign
from dsbisect.lab.candidates import RowSupply
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import open_lab
from dsbisect.lab.watcher import Watcher
from dsbisect.search.question import Question
from dsbisect.search.rounds import Rounds
from dsharness.containers.engine import Engine
from dsharness.model import Matrix, Sample, Settings, Workload
from dsresults.store import Store


@dataclass(frozen=True, kw_only=True)
class SamplesRequest:
    """What to measure, and how often."""

    matrix: Matrix
    row: str
    workloads: tuple[Workload, ...]
    settings: Settings
    samples: int
    relock: bool = False
    keep: bool = False


def measure_row(
    request: SamplesRequest, engine: Engine, store: Store, watcher: Watcher
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
