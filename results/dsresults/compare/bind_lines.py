"""Binds of several arms over the number of distinct users: figures, table and chart. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from pydantic import Field

from dsharness.measure.gate import starved
from dsharness.measure.metrics import COST, CPU, RATE
from dsharness.model import Sample, Value
from dsresults.number_text import milliseconds, significant, whole
from dsresults.page.chart import (
    MOST_LINES,
    Area,
    Axis,
    Chart,
    ChartLine,
    line_chart,
    log_axis,
)
from dsresults.page.page import UNKNOWN, Content, Table, key, quiet

MOST_TAKEN_PCT = 99.0


class BindPoint(Value):
    """One arm with so many users; medians of the valid runs."""

    users: int
    runs: int
    rate_per_s: float
    cpu_us: float
    cost: float = Field(description="in units of the calibrator")
    load_bound: bool = Field(description="in most runs the load had no CPU left")
    left: float = Field(
        default=1.0, description="the share of the server's CPUs that other programs did not take"
    )
    starved: bool = Field(
        default=False, description="in most runs server or load waited for a CPU that others had"
    )

    @property
    def busy_cpus(self) -> float:
        return self.rate_per_s * self.cpu_us / 1e6

    def busy_share(self, cpus: int) -> float:
        """Return how much it used of what others left of so many CPUs."""
        return min(1.0, self.busy_cpus / (cpus * self.left))

    @classmethod
    def of(cls, users: int, samples: Iterable[Sample]) -> Self | None:
        """None without a valid run."""
        valid = [sample for sample in samples if sample.valid]
        metrics = {
            metric.name: [value for run in valid if (value := run.value(metric.name)) is not None]
            for metric in (RATE, CPU, COST)
        }
        if not all(metrics.values()):
            return None
        rate, cpu, cost = (statistics.median(values) for values in metrics.values())
        return cls(
            users=users,
            runs=len(valid),
            rate_per_s=rate,
            cpu_us=cpu,
            cost=cost,
            load_bound=2 * sum(run.load_bound for run in valid) > len(valid),
            left=1 - min(statistics.median(run.others_pct for run in valid), MOST_TAKEN_PCT) / 100,
            starved=2 * sum(bool(starved(run)) for run in valid) > len(valid),
        )


class BindLine(Value):
    """One arm, over users."""

    arm: str
    title: str
    row: str
    asked: str = Field(default="", description="the scheme that passwords were to be stored by")
    version: str = ""
    stored: str = Field(default="", description="how the server stores passwords, read back")
    scheme: str = ""
    rounds: int | None = None
    keeps: int = Field(default=0, description="results that the hashing library keeps")
    library: str = Field(default="", description="the version of the library that keeps them")
    points: tuple[BindPoint, ...] = ()
    failed: str = Field(default="", description="why there is nothing")

    def at(self, users: int) -> BindPoint | None:
        return next((point for point in self.points if point.users == users), None)

    @property
    def most(self) -> BindPoint | None:
        """The point with the most users."""
        return max(self.points, key=lambda point: point.users, default=None)


class BindFigures(Value):
    """All arms of a measurement."""

    lines: tuple[BindLine, ...] = ()
    connections: int = 0
    server_cpus: int = 0
    campaigns: tuple[str, ...] = ()

    def line(self, arm: str) -> BindLine | None:
        """None for one that was not measured."""
        match = next((line for line in self.lines if line.arm == arm), None)
        return match if match and match.points else None

    def why_not(self, arm: str) -> str:
        """Why an arm has no figures."""
        match = next((line for line in self.lines if line.arm == arm), None)
        return f"{arm}: {match.failed or 'no valid run'}" if match else f"{arm} was not measured"

    @classmethod
    def merged(cls, several: Sequence[BindFigures]) -> BindFigures:
        """The figures of several measurements; an arm of two has the points of both."""
        lines: dict[str, BindLine] = {}
        for line in (line for figures in several for line in figures.lines):
            earlier = lines.get(line.arm)
            points = {
                point.users: point for point in (*(earlier.points if earlier else ()), *line.points)
            }
            better = line if line.points or not earlier else earlier
            lines[line.arm] = better.model_copy(
                update={"points": tuple(points[users] for users in sorted(points))}
            )
        return cls(
            lines=tuple(lines.values()),
            connections=max((figures.connections for figures in several), default=0),
            server_cpus=max((figures.server_cpus for figures in several), default=0),
            campaigns=tuple(name for figures in several for name in figures.campaigns),
        )


def points_of(samples: Mapping[int, Sequence[Sample]]) -> tuple[BindPoint, ...]:
    """Those numbers of users that have a valid run, few users first."""
    points = (BindPoint.of(users, samples[users]) for users in sorted(samples))
    return tuple(point for point in points if point)


AREA = Area(width=700.0, right=470.0)


def users_chart(figures: BindFigures) -> Chart | None:
    """Return binds a second over users, both axes logarithmic; None without two points."""
    lines = _drawn(figures)
    if not lines:
        return None
    points = [point for line in lines for point in line.points]
    users = sorted({point.users for point in points})
    left_out = sum(len(line.points) > 1 for line in figures.lines) - len(lines)
    return line_chart(
        title="Binds a second over the number of distinct users",
        caption="Binds a second over the number of distinct users, both on log axes."
        f"{f' Not drawn: {left_out}.' if left_out else ''}",
        kind="users",
        area=AREA,
        across=Axis(
            low=users[0],
            high=users[-1],
            marks={number: whole(number) for number in users},
            title="distinct users that bind",
            bend=math.log,
        ),
        up=log_axis([point.rate_per_s for point in points], lambda rate: f"{whole(rate)}/s"),
        lines=[
            ChartLine(
                name=line.title,
                title=f"{line.title}: "
                + ", ".join(
                    f"{point.users}: {significant(point.rate_per_s)}/s" for point in line.points
                ),
                points=[(point.users, point.rate_per_s) for point in line.points],
                pattern=number,
                dots=True,
            )
            for number, line in enumerate(lines)
        ],
    )


def _drawn(figures: BindFigures) -> list[BindLine]:
    return [line for line in figures.lines if len(line.points) > 1][:MOST_LINES]


def rate_table(figures: BindFigures) -> Table:
    """Return the rates of each arm, a column for each number of users."""
    users = sorted({point.users for line in figures.lines for point in line.points})
    drawn_lines = _drawn(figures)

    def cell(point: BindPoint | None) -> Content:
        if point is None:
            return UNKNOWN
        return (significant(point.rate_per_s), quiet(milliseconds(point.cpu_us)))

    return Table(
        kind="figures-of-levels",
        caption=(
            "binds a second with so many distinct users, the median of the runs",
            quiet(", and the CPU time of a bind"),
        ),
        columns=("server", *map(whole, users), "stored as, read back"),
        rows=[
            (
                (
                    key(drawn_lines.index(line) if line in drawn_lines else None),
                    line.title,
                    quiet(f" {line.version}" if line.version else ""),
                ),
                *(cell(line.at(number)) for number in users),
                line.stored or line.failed,
            )
            for line in figures.lines
        ],
    )
