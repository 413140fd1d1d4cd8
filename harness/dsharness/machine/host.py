"""What this machine is and what it is doing: fingerprint, CPUs to use, stolen time, speed.

Its speed is told by a calibrator: a fixed piece of work, timed while a sample runs. On shared
machines the same bind costs 10-30 % more CPU time from one minute to the next. The calibrator slows
down with it, so that cost divided by calibrator keeps to a few percent (see docs/verdicts.md for
figures and the command that produced them).
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import statistics
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from dsharness.containers.engine import Engine
from dsharness.content_key import content_key
from dsharness.machine.cgroups import TICK_S
from dsharness.model import Machine


@dataclass(frozen=True, kw_only=True)
class CpuShares:
    """Which CPUs the server gets and which the load, so that neither slows the other."""

    server: tuple[int, ...]
    load: tuple[int, ...]
    pinned: bool


def share_cpus(available: tuple[int, ...], *, can_pin: bool) -> CpuShares:
    """Return a quarter of the CPUs, at least one, for the load; the rest for the server."""
    if not can_pin or len(available) < 2:
        return CpuShares(server=available, load=available, pinned=False)
    split = len(available) - max(1, len(available) // 4)
    return CpuShares(server=available[:split], load=available[split:], pinned=True)


def available_cpus() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


@dataclass(frozen=True, kw_only=True)
class CpuTicks:
    """Ticks of some CPUs, since boot or since another reading."""

    total: int
    steal: int
    idle: int = 0

    def __sub__(self, earlier: CpuTicks) -> CpuTicks:
        return CpuTicks(
            total=self.total - earlier.total,
            steal=self.steal - earlier.steal,
            idle=self.idle - earlier.idle,
        )

    @property
    def steal_pct(self) -> float:
        return 100.0 * self.steal / self.total if self.total > 0 else 0.0

    def taken_pct(self, own_us: float) -> float:
        """Return the share that neighbours and the hypervisor took, where the lab used so much."""
        taken = self.total - self.idle - own_us / 1e6 / TICK_S
        return 100.0 * min(1.0, max(0.0, taken / self.total)) if self.total > 0 else 0.0


def parse_ticks(stat: str, cpus: tuple[int, ...]) -> CpuTicks:
    """Sum the lines of /proc/stat that belong to ``cpus``."""
    names = {f"cpu{cpu}" for cpu in cpus}
    rows = [
        line.split() for line in stat.splitlines() if line.split()[:1] and line.split()[0] in names
    ]
    numbers = [[int(field) for field in row[1:9]] for row in rows]
    return CpuTicks(
        total=sum(sum(row) for row in numbers),
        steal=sum(row[7] for row in numbers if len(row) > 7),
        idle=sum(sum(row[3:5]) for row in numbers),  # waiting for a disk is idle, too
    )


def read_ticks(cpus: tuple[int, ...]) -> CpuTicks:
    return parse_ticks(Path("/proc/stat").read_text(encoding="utf-8"), cpus)


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """The kernel's clocks at one moment."""

    monotonic_s: float
    boot_s: float
    wall_s: float

    @classmethod
    def read(cls) -> Clocks:
        return cls(
            monotonic_s=time.clock_gettime(time.CLOCK_MONOTONIC),
            boot_s=time.clock_gettime(time.CLOCK_BOOTTIME),
            wall_s=time.clock_gettime(time.CLOCK_REALTIME),
        )

    def suspended_s_until(self, later: Clocks) -> float:
        """Return how long the whole machine slept."""
        return (later.boot_s - self.boot_s) - (later.monotonic_s - self.monotonic_s)

    def stepped_s_until(self, later: Clocks) -> float:
        """Return the seconds by which someone set the clock."""
        return (later.wall_s - self.wall_s) - (later.boot_s - self.boot_s)


def machine_now(engine: Engine, cpus: CpuShares) -> Machine:
    """Return this machine, as samples carry it."""
    return Machine(
        id=machine_id(),
        facts={
            "architecture": platform.machine(),
            "cpu_count": os.cpu_count() or 0,
            "cpu_model": _cpu_model(),
            "kernel": platform.release(),
            "server_cpus": cpus.server,
            "load_cpus": cpus.load,
            "pinned": cpus.pinned,
            "cgroups": engine.cgroups,
            "rootless": engine.rootless,
            "runtime": engine.runtime,
            "podman": engine.podman_version,
        },
    )


def machine_id() -> str:
    """Return an id of this machine, also after a reboot; a hash, since the id is private.

    A boot is left out: a search continues after one, as its references are measured all the time.
    """
    node = system_text(Path("/etc/machine-id")) or platform.node()
    return content_key([node, _cpu_model(), *_part])


_part: list[str] = []


def name_part(name: str) -> None:
    """Make this process a machine of its own: a named part of this one, with its CPUs."""
    _part[:] = [name]


@functools.cache
def session_id() -> str:
    """This start of the lab. Runs of one share an offset that those of another may not have."""
    return uuid.uuid4().hex


def place_id() -> str:
    """Return where process ids mean the same: one boot of one machine, one namespace."""
    boot = system_text(Path("/proc/sys/kernel/random/boot_id"))
    try:
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        namespace = ""
    return content_key([system_text(Path("/etc/machine-id")), boot, namespace])


def system_text(path: Path) -> str:
    """Return what a file of the kernel or the system says; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _cpu_model() -> str:
    lines = system_text(Path("/proc/cpuinfo")).splitlines()
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return models[0] if models else "unknown"


ROUNDS = 4000
PAUSE_S = 0.08


class Calibrator:
    """Context manager; ``cpu_us`` is the median CPU time of one piece of work, in microseconds.

    Since it wakes at an even pace, it also sees when the lab itself was not allowed to run, and
    when ``paused`` says that what is measured was not; and it is who reads a server's usage.
    """

    def __init__(
        self,
        cpus: tuple[int, ...],
        paused: Callable[[], bool] = lambda: False,
        awake: Callable[[], None] = lambda: None,
    ) -> None:
        self._cpus = cpus or tuple(sorted(os.sched_getaffinity(0)))
        self._paused = paused
        self._awake = awake
        self.gap_s = 0.0  # the longest time between two pieces of work
        self.paused_s = 0.0
        self._times_us: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="calibrator", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def all_us(self) -> float:
        """CPU time of all its work."""
        return sum(self._times_us)

    @property
    def cpu_us(self) -> float | None:
        return statistics.median(self._times_us) if self._times_us else None

    def _work(self) -> None:
        # Affinity and the CPU clock are per thread on Linux, and hashing releases the GIL.
        latest = time.monotonic()
        while not self._stop.is_set():
            now, since = time.monotonic(), latest
            latest = now
            self.gap_s = max(self.gap_s, now - since)
            self.paused_s += (now - since) if self._paused() else 0.0
            for cpu in self._cpus:
                os.sched_setaffinity(0, {cpu})
                begin = time.thread_time_ns()
                hashlib.pbkdf2_hmac("sha256", b"calibrator", b"salt", ROUNDS)
                self._times_us.append((time.thread_time_ns() - begin) / 1000)
            self._awake()
            self._stop.wait(PAUSE_S)
