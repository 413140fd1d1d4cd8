"""Domain controllers of several releases, of several sizes, and how busy their CPUs are."""

# A kind is one word, which pyright takes for what could be set.
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class DomainPoint:
    """One row under one load; medians of the valid runs."""

    bind: BindPoint
    cpus: int  # of the server

    @property
    def left_cpus(self) -> float:
        """What other programs did not take of them."""
        return self.cpus * self.bind.left

    @property
    def busy(self) -> float:
        """The share of what it could have of its CPUs."""
        return self.bind.busy_share(self.cpus)

    def __str__(self) -> str:
        return (
            f"{whole(self.bind.rate_per_s)} a second, {milliseconds(self.bind.cpu_us)} of CPU "
            f"each, {significant(self.bind.busy_cpus)} of the {significant(self.left_cpus)} CPUs "
            "that it could have"
        )


Points = Mapping[str, Mapping[str, DomainPoint]]  # by row, then by load
Ratio = tuple[str, float]


class DomainsMeasured(MeasurementBase):
    """Rows under loads, next to each other; loads of directories with so many users each."""

    kind: Literal["domains"]
    rows: tuple[Identifier, ...] = Field(min_length=1, description="oldest first")
    workloads: tuple[Identifier, ...] = Field(min_length=1)
    users: tuple[PositiveInt, ...] = Field(default=(), description="sizes; else as the load says")
    divided: Literal["releases", "sizes", "busy"] = Field(
        description="costs of the first row and the last; costs of the last size and the first; "
        "CPU time and the time that there was"
    )
    runs: PositiveInt = 3


def measure_domains(lab: ClaimsLab, measured: DomainsMeasured) -> RatioFigures:
    """Measure one load after the other: each has its own content."""
    points: dict[str, dict[str, DomainPoint]] = {row: {} for row in measured.rows}
    failed = list[str]()
    cpus = len(lab.cpus.server)
    loads = [load for name in measured.workloads for load in _sized(lab, name, measured.users)]
    for load in loads:
        runs = arm_runs(lab, measured.rows, (load,), measured.runs)
        failed += (f"{name}: {why}" for name, why in runs.failed.items())
        for row, samples in runs.samples.items():
            bind = BindPoint.of(load.content.number, samples.get(load.id, ()))
            if bind is None:
                failed.append(f"{row} gave no valid run under {load.id}")
            else:
                points[row][load.id] = DomainPoint(bind=bind, cpus=cpus)
    what, axis, ratios = DIVIDED[measured.divided]
    return RatioFigures(
        what=what,
        axis=axis,
        ratios=dict(ratios(points)),
        failed=tuple(failed),
        lines=tuple(
            f"{row}, {load}: {point}"
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


def _of_releases(points: Points) -> Iterator[Ratio]:
    first, last = next(iter(points.values())), [*points.values()][-1]
    for load in first:
        if load in last:
            yield load, first[load].bind.cost / last[load].bind.cost


def _of_sizes(points: Points) -> Iterator[Ratio]:
    for row, of_row in points.items():
        sizes = sorted((point.bind for point in of_row.values()), key=lambda bind: bind.users)
        if len(sizes) > 1:
            yield row, sizes[-1].cost / sizes[0].cost


def _busy(points: Points) -> Iterator[Ratio]:
    for row, of_row in points.items():
        for load, point in of_row.items():
            yield f"{row}, {load}", point.busy


# What is divided, what its cases differ in, and how.
DIVIDED: Mapping[str, tuple[str, str, Callable[[Points], Iterator[Ratio]]]] = {
    "releases": (
        "how many times more the newest release answers by the same CPU time than the oldest one",
        "the load",
        _of_releases,
    ),
    "sizes": (
        "how many times more an operation costs in the largest domain", "the release", _of_sizes
    ),
    "busy": ("the share that it uses of the CPUs that others left it", "the load", _busy),
}  # fmt: skip


EXPERIMENTS = (
    Experiment(
        asked=DomainsMeasured, title="domain controllers under load", measure=measure_domains
    ),
)
