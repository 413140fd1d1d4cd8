"""Domain controllers of several releases, of several sizes, and how busy their CPUs are."""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from pydantic import Field, PositiveInt

from dsbisect.claims.binds_measured import arm_runs
from dsbisect.claims.claims_lab import ClaimsLab
from dsharness.matrix import find_workload
from dsharness.model import DirectoryWorkload, Identifier, Workload
from dsharness.products.published_claims import Experiment, MeasurementBase
from dsresults.compare.bind_lines import BindPoint
from dsresults.compare.trial_claims import RatioFigures
from dsresults.number_text import milliseconds, significant, whole

Points = Mapping[str, Mapping[str, BindPoint]]  # by row, then by load
Ratio = tuple[str, float]


class DomainsMeasured(MeasurementBase):
    """Rows under loads, next to each other; loads of directories with so many users each."""

    kind: Literal["domains"]
    rows: tuple[Identifier, ...] = Field(min_length=1, description="oldest first")
    workloads: tuple[Identifier, ...] = Field(min_length=1)
    users: tuple[PositiveInt, ...] = Field(default=(), description="sizes; else as the load says")
    divided: Literal["releases", "sizes", "busy"] = Field(
        description="rates of the last row and the first; costs of the last size and the first; "
        "CPU time and the time that there was"
    )
    runs: PositiveInt = 3


def measure_domains(lab: ClaimsLab, measured: DomainsMeasured) -> RatioFigures:
    """Measure one load after the other: each has its own content."""
    points: dict[str, dict[str, BindPoint]] = {row: {} for row in measured.rows}
    failed = dict[str, str]()
    cpus = len(lab.cpus.server)
    loads = [load for name in measured.workloads for load in _sized(lab, name, measured.users)]
    for load in loads:
        runs = arm_runs(lab, measured.rows, (load,), measured.runs)
        failed |= {f"{name}: {why}": "" for name, why in runs.failed.items()}
        for row, samples in runs.samples.items():
            point = BindPoint.of(load.content.number, samples.get(load.id, ()))
            if point is None:
                failed[f"{row} gave no valid run under {load.id}"] = ""
            else:
                points[row][load.id] = point
    what, axis, ratios = DIVIDED[measured.divided]
    return RatioFigures(
        what=what,
        axis=axis,
        ratios=dict(ratios(points, cpus)),
        failed=tuple(failed),
        lines=tuple(
            f"{row}, {load}: {whole(point.rate_per_s)} a second, {milliseconds(point.cpu_us)} of "
            f"CPU each, {significant(point.busy_cpus)} of {cpus} CPUs"
            for row, of_row in points.items()
            for load, point in of_row.items()
        ),
    )


def _sized(lab: ClaimsLab, name: str, users: tuple[int, ...]) -> Iterator[Workload]:
    load = find_workload(lab.matrix, name)
    if isinstance(load, DirectoryWorkload) and users:
        yield from (load.sized(number) for number in users)
    else:
        yield load


def _of_releases(points: Points, cpus: int) -> Iterator[Ratio]:
    del cpus
    first, last = next(iter(points.values())), [*points.values()][-1]
    for load in first.keys() & last.keys():
        yield load, last[load].rate_per_s / first[load].rate_per_s


def _of_sizes(points: Points, cpus: int) -> Iterator[Ratio]:
    del cpus
    for row, of_row in points.items():
        sizes = sorted(of_row.values(), key=lambda point: point.users)
        if len(sizes) > 1:
            yield row, sizes[-1].cost / sizes[0].cost


def _busy(points: Points, cpus: int) -> Iterator[Ratio]:
    for row, of_row in points.items():
        for load, point in of_row.items():
            yield f"{row}, {load}", point.busy_cpus / cpus


# What is divided, what its cases differ in, and how.
DIVIDED: Mapping[str, tuple[str, str, Callable[[Points, int], Iterator[Ratio]]]] = {
    "releases": (
        "how many times more the newest release answers than the oldest one", "the load",
        _of_releases,
    ),
    "sizes": (
        "how many times more an operation costs in the largest domain", "the release", _of_sizes
    ),
    "busy": ("the share of its CPUs that it uses under load", "the load", _busy),
}  # fmt: skip


EXPERIMENTS = (
    Experiment(
        asked=DomainsMeasured, title="domain controllers under load", measure=measure_domains
    ),
)
