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
class Look:
    """What to measure, and how often."""

    matrix: Matrix
    row: str
    workloads: tuple[Workload, ...]
    settings: Settings
    samples: int
    relock: bool = False
    keep: bool = False


def measure_row(
    look: Look, engine: Engine, store: Store, listener: SamplesListener
) -> list[Sample]:
    """Prepare the row and measure it; each sample is stored at once."""
    plan = LabPlan.on(
        engine,
        matrix=look.matrix,
        settings=look.settings,
        workloads=look.workloads,
        duet=False,
        keep=look.keep,
    )
    supply = RowSupply(engine=engine, matrix=look.matrix, relock=look.relock)
    taken: list[Sample] = []
    with open_lab(
        plan, supply, [look.row], engine=engine, store=store, watcher=listener
    ) as laboratory:
        if look.row in laboratory.failures:
            raise laboratory.failures[look.row]
        listener.expect(len(look.workloads) * look.samples)
        for workload in look.workloads:
            campaign = Campaign(
                id=str(uuid.uuid4()),
                kind="measure",
                series_id=look.row,
                workload_id=workload.id,
                settings_id=look.settings.id,
                started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                fingerprint=content_key(laboratory.setup.model_dump(mode="json")),
            )
            store.add_campaign(campaign)
            laboratory.ready(look.row)
            for turn in range(look.samples):
                runs = laboratory.samples([look.row], workload, campaign_id=campaign.id, turn=turn)
                for sample in runs:
                    store.add_sample(sample)
                    taken.append(sample)
                    listener.sampled(sample)
    return taken
