"""The CPU time of a server while something is done, and what the machine did meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from dsharness.machine.host import Calibrator, Clocks, CpuShares, read_ticks
from dsharness.measure.gate import Conditions
from dsharness.measure.instance import Instance

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Watched(Generic[T]):
    """What some work gave, and what was seen of server and machine meanwhile."""

    given: T
    server_cpu_us: float | None = None
    calibrator_us: float | None = None
    steal_pct: float = 0.0
    conditions: Conditions = field(default_factory=Conditions)


def watched(
    instance: Instance, cpus: CpuShares, paused: Callable[[], bool], work: Callable[[], T]
) -> Watched[T]:
    """Do it. CPU time is read next to it on either side, so that no look of the lab is in it."""
    ticks, clocks = read_ticks(cpus.server), Clocks.read()
    cpu_before_us = instance.cpu_us()
    with Calibrator(cpus.server, paused=paused) as calibrator:
        given = work()
        cpu_after_us = instance.cpu_us()
    later = Clocks.read()
    known = None if cpu_before_us is None or cpu_after_us is None else cpu_after_us - cpu_before_us
    return Watched(
        given=given,
        server_cpu_us=known,
        calibrator_us=calibrator.cpu_us,
        steal_pct=ticks.steal_pct_until(read_ticks(cpus.server)),
        conditions=Conditions(
            gap_s=calibrator.gap_s,
            paused_s=calibrator.paused_s,
            suspended_s=clocks.suspended_s_until(later),
            stepped_s=clocks.stepped_s_until(later),
        ),
    )
