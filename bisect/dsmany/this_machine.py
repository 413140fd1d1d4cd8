"""The machine that a worker runs on: its class, what it can do, how noisy it is now."""

from __future__ import annotations

import platform
import shutil
import statistics
import time
from datetime import UTC, datetime

from dsharness.containers.engine import Engine
from dsharness.machine.hardware_counter import host_counts
from dsharness.machine.host import Calibrator, available_cpus, machine_now, share_cpus
from dsharness.matrix.cross_checks import BOOTSTRAP_OF
from dsharness.model import Abilities, Family, FleetMachine
from dsmany.fleet import class_of

NOISE_ROUNDS, NOISE_ROUND_S = 6, 0.5


def abilities_of(engine: Engine) -> Abilities:
    """Return what a worker says of its machine; it runs perf once.

    mmdebstrap makes bases of debs, and the container in which dnf makes those of RPMs.
    """
    bootstraps = shutil.which("mmdebstrap") is not None
    return Abilities(
        families=tuple(family for family in Family if bootstraps or family not in BOOTSTRAP_OF),
        counters=host_counts(),
        pins_cpus=engine.pins_cpus,
    )


def this_machine(engine: Engine, name: str) -> FleetMachine:
    """Return what this machine can do, and how noisy it is now."""
    cpus = available_cpus()
    machine = machine_now(engine, share_cpus(cpus, can_pin=engine.pins_cpus))
    return FleetMachine(
        id=machine.id,
        name=name or platform.node(),
        class_name=class_of(machine),
        noise_pct=_noise_pct(cpus),
        cpus=cpus,
        can=abilities_of(engine),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _noise_pct(cpus: tuple[int, ...]) -> float:
    """Return how much the CPU time of a fixed piece of work varies here: a standard deviation."""
    speeds: list[float] = []
    for _ in range(NOISE_ROUNDS):
        with Calibrator(cpus) as calibrator:
            time.sleep(NOISE_ROUND_S)
        speeds.append(calibrator.cpu_us or 0.0)
    mean = statistics.fmean(speeds)
    return round(100 * statistics.stdev(speeds) / mean, 2) if mean else 0.0
