"""Binds of several arms over the number of distinct users: what samples say of each. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from pydantic import Field

from dsharness.measure.metrics import COST, CPU, RATE
from dsharness.model import Sample, Value


class BindPoint(Value):
    """One arm with so many users; medians of the valid runs."""

    users: int
    runs: int
    rate_per_s: float
    cpu_us: float
    cost: float = Field(description="in units of the calibrator")
    load_bound: bool = Field(description="in most runs the load had no CPU left")

    @property
    def busy_cpus(self) -> float:
        return self.rate_per_s * self.cpu_us / 1e6

    @classmethod
    def of(cls, users: int, samples: Iterable[Sample]) -> Self | None:
        """None without a valid run."""
        valid = [each for each in samples if each.valid]
        found = {
            metric.name: [value for run in valid if (value := run.value(metric.name)) is not None]
            for metric in (RATE, CPU, COST)
        }
        if not all(found.values()):
            return None
        rate, cpu, cost = (statistics.median(values) for values in found.values())
        bound = 2 * sum(run.load_bound for run in valid) > len(valid)
        return cls(
            users=users, runs=len(valid), rate_per_s=rate, cpu_us=cpu, cost=cost, load_bound=bound
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
        found = next((line for line in self.lines if line.arm == arm), None)
        return found if found and found.points else None

    def why_not(self, arm: str) -> str:
        """Why an arm has no figures."""
        found = next((line for line in self.lines if line.arm == arm), None)
        return f"{arm}: {found.failed or 'no valid run'}" if found else f"{arm} was not measured"

    @classmethod
    def merged(cls, several: Sequence[BindFigures]) -> BindFigures:
        """The figures of several measurements; an arm of two has the points of both."""
        lines: dict[str, BindLine] = {}
        for line in (line for each in several for line in each.lines):
            known = lines.get(line.arm)
            points = {
                point.users: point for point in (*(known.points if known else ()), *line.points)
            }
            better = line if line.points or not known else known
            lines[line.arm] = better.model_copy(
                update={"points": tuple(points[users] for users in sorted(points))}
            )
        return cls(
            lines=tuple(lines.values()),
            connections=max((each.connections for each in several), default=0),
            server_cpus=max((each.server_cpus for each in several), default=0),
            campaigns=tuple(name for each in several for name in each.campaigns),
        )


def points_of(samples: Mapping[int, Sequence[Sample]]) -> tuple[BindPoint, ...]:
    """Those numbers of users that have a valid run, few users first."""
    found = (BindPoint.of(users, samples[users]) for users in sorted(samples))
    return tuple(point for point in found if point)
