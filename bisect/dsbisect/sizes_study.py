"""Rows with the same load on directories of several sizes: how its cost grows.

Each size is a workload and a lab of its own, one after the other; rows take turns within it. What
is stored counts: the same request goes on where it was interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsbisect.open_campaigns import OpenCampaigns
from dsbisect.rows_study import RowsAsked, row_lab
from dsharness.containers.engine import Engine
from dsharness.measure.metrics import find_metric, refuse_unfit
from dsharness.model import DirectoryWorkload, Sample, Workload
from dslab.laboratory import Laboratory, refuse_failed
from dslab.watcher import Watcher
from dsresults.compare.size_growth import SizeGrowth, grown
from dsresults.store import Store


@dataclass(frozen=True, kw_only=True)
class SizesRequest(RowsAsked):
    """Which rows, with which load; its workloads are that load at each size."""

    rows: tuple[str, ...]
    load: Workload
    runs: int = 5

    @property
    def sized(self) -> dict[int, Workload]:
        """The load at each size, the smallest first; UsageError where the metric says nothing."""
        refuse_unfit(find_metric(self.metric), self.workloads)
        loads = [each for each in self.workloads if isinstance(each, DirectoryWorkload)]
        return {each.users: each for each in sorted(loads, key=lambda load: load.users)}


def measure_sizes(
    request: SizesRequest, engine: Engine, store: Store, watcher: Watcher
) -> SizeGrowth:
    """Prepare the rows at each size, and measure those that can be made there."""
    sized, taken = request.sized, dict[int, list[Sample]]()
    labs = dict[int, Laboratory]()
    watcher.begin([f"{row}@{users}" for users in sized for row in request.rows], 1)
    for users, load in sized.items():
        asked = replace(request, workloads=(load,))
        later = len(request.rows) * request.runs * (len(sized) - len(taken) - 1)
        with row_lab(
            asked, request.rows, 1, engine=engine, store=store, watcher=watcher, duet=False
        ) as lab:
            labs[users] = lab
            made = tuple(row for row in request.rows if row not in lab.failures)
            campaigns = OpenCampaigns(
                asked=request, kind="sizes", lab=lab, store=store, watcher=watcher
            )
            taken[users] = campaigns.valid(load, made, request.runs, later) if made else []
    begun = [sample.started_at for samples in taken.values() for sample in samples]
    if not begun:
        for lab in labs.values():
            refuse_failed(lab)
    return SizeGrowth(
        workload_id=request.load.id,
        title=request.load.title,
        metric=request.metric,
        asked_runs=request.runs,
        measured_from=min(begun),
        measured_until=max(begun),
        rows=grown(
            find_metric(request.metric),
            request.rows,
            taken,
            {users: lab.unmeasurable for users, lab in labs.items()},
        ),
    )
