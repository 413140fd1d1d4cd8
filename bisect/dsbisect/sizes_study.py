"""Rows with the same load on directories of several sizes: how its cost grows.

Each size is a workload and a lab of its own, one after the other; rows take turns within it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dsbisect.studies import Sizes
from dsbisect.study_lab import Lab, Scene
from dsharness.errors import UsageError
from dsharness.measure.metrics import find_metric, refuse_unfit
from dsharness.model import DirectoryWorkload, Sample, Workload
from dsresults.compare.size_growth import SizeGrowth, grown


def sized_loads(study: Sizes, scene: Scene) -> tuple[Workload, ...]:
    """The load at each size, the smallest first; UsageError where the metric says nothing."""
    if not isinstance(scene.workload(study.workload), DirectoryWorkload):
        fit = (load.id for load in scene.matrix.workloads if isinstance(load, DirectoryWorkload))
        raise UsageError(
            f"--workload {study.workload} is no load on a directory's users",
            hint=f"one of {', '.join(fit)}",
        )
    loads = tuple(scene.workload(f"{study.workload}@{users}") for users in study.sizes)
    refuse_unfit(find_metric(study.metric), loads)
    return loads


def play_sizes(study: Sizes, lab: Lab) -> SizeGrowth:
    """Measure at each size the rows that can be made there."""
    samples_by_size = dict[int, list[Sample]]()
    failures = dict[int, Mapping[str, str]]()
    refuse: Callable[[], None] | None = None
    loads = study.loads(lab.scene)
    lab.announce([f"{row}@{users}" for users in study.sizes for row in study.rows])
    for users, load in zip(study.sizes, loads, strict=True):
        later = len(study.rows) * study.runs * (len(loads) - len(samples_by_size) - 1)
        with lab.rows(study, load) as runs:
            failures[users], refuse = runs.failures, refuse or runs.refuse_failed
            rows_made = tuple(row for row in study.rows if row not in runs.failures)
            samples_by_size[users] = (
                runs.valid(load, rows_made, study.runs, later) if rows_made else []
            )
    begin_times = [sample.started_at for samples in samples_by_size.values() for sample in samples]
    if not begin_times and refuse is not None:
        refuse()
    workload = lab.scene.workload(study.workload)
    return SizeGrowth(
        workload_id=workload.id,
        title=workload.title,
        metric=study.metric,
        asked_runs=study.runs,
        measured_from=min(begin_times),
        measured_until=max(begin_times),
        rows=grown(find_metric(study.metric), study.rows, samples_by_size, failures),
    )
