"""Some samples of one row, without a search: for `measure`, and for the noise of a plan."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from dsbisect.lab.candidates import RowSupply
from dsbisect.lab.lab_plan import LabPlan
from dsbisect.lab.laboratory import open_lab
from dsbisect.lab.watcher import SamplesListener
from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.model import Campaign, Matrix, Sample, Settings, Workload
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
    request: SamplesRequest, engine: Engine, store: Store, listener: SamplesListener
) -> list[Sample]:
    """Prepare the row and measure it; each sample is stored at once."""
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
        plan, supply, [request.row], engine=engine, store=store, watcher=listener
    ) as laboratory:
        if request.row in laboratory.failures:
            raise laboratory.failures[request.row]
        listener.expect(len(request.workloads) * request.samples)
        for workload in request.workloads:
            campaign = Campaign(
                id=str(uuid.uuid4()),
                kind="measure",
                series_id=request.row,
                workload_id=workload.id,
                settings_id=request.settings.id,
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                fingerprint=content_key(laboratory.setup.model_dump(mode="json")),
            )
            store.add_campaign(campaign)
            laboratory.ready(request.row)
            for turn in range(request.samples):
                runs = laboratory.samples(
                    [request.row], workload, campaign_id=campaign.id, turn=turn
                )
                for sample in runs:
                    store.add_sample(sample)
                    taken.append(sample)
                    listener.sampled(sample)
    return taken
