"""CPU time and memory of a container's processes, on cgroup v1, v2 or without either."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True, kw_only=True)
class CpuMeter:
    """Reads how much CPU time a container has used so far, and says by which means."""

    source: str  # "cgroup-v2", "cgroup-v1" or "proc"
    path: Path
    pid: int

    def used_us(self) -> float:
        """Microseconds of CPU time so far; OSError once the container is gone."""
        if self.source == "cgroup-v2":
            fields = dict(line.split() for line in self._text("cpu.stat").splitlines())
            return float(fields["usage_usec"])
        if self.source == "cgroup-v1":
            return int(self._text("cpuacct.usage")) / 1000
        return process_tree_cpu_us(self.pid)

    def _text(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")


def frozen_file(pid: int, container_id: str, proc: Path = PROC) -> Path | None:
    """The file that says whether a container is paused; None where there is no such file."""
    membership = (proc / str(pid) / "cgroup").read_text(encoding="utf-8")
    mounts = (proc / "self" / "mountinfo").read_text(encoding="utf-8")
    for controller, name in (("freezer", "freezer.state"), ("", "cgroup.freeze")):
        inside = own_cgroup(membership, controller, container_id)
        root = cgroup_mount(mounts, controller)
        if inside and root and (root / inside / name).is_file():
            return root / inside / name
    return None


def is_frozen(file: Path | None) -> bool:
    try:
        said = file.read_text(encoding="utf-8").strip() if file else ""
    except OSError:
        return False  # the container is gone, which is noticed elsewhere
    return said not in ("", "THAWED", "0")


def meter_for(pid: int, container_id: str, proc: Path = PROC) -> CpuMeter:
    """The best meter for a container; a cgroup counts only when it is the container's own."""
    membership = (proc / str(pid) / "cgroup").read_text(encoding="utf-8")
    mounts = (proc / "self" / "mountinfo").read_text(encoding="utf-8")
    for source, controller, name in (
        ("cgroup-v1", "cpuacct", "cpuacct.usage"),
        ("cgroup-v2", "", "cpu.stat"),
    ):
        inside = own_cgroup(membership, controller, container_id)
        root = cgroup_mount(mounts, controller)
        if inside and root and (root / inside / name).is_file():
            return CpuMeter(source=source, path=root / inside, pid=pid)
    return CpuMeter(source="proc", path=proc / str(pid), pid=pid)


def own_cgroup(membership: str, controller: str, container_id: str) -> str | None:
    """The container's path below the controller's mount ("" is v2); None if it is shared."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") and container_id[:12] in path:
            return path.lstrip("/")
    return None


def cgroup_mount(mountinfo: str, controller: str) -> Path | None:
    """Where a v1 controller, or v2 for "", is mounted."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = ([*after.split(), "", "", ""])[:3]
        wanted = kind == "cgroup2" if not controller else kind == "cgroup"
        if wanted and (not controller or controller in options.split(",")):
            return Path(before.split()[4])
    return None


def process_tree_cpu_us(pid: int, proc: Path = PROC) -> float:
    """CPU time of a process and its living descendants, in the kernel's 10 ms ticks."""
    tick_us = 1_000_000 / os.sysconf("SC_CLK_TCK")
    parents: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we were looking
        child = int(stat.parent.name)
        parents.setdefault(int(fields[1]), []).append(child)
        ticks[child] = int(fields[11]) + int(fields[12])
    if pid not in ticks:
        raise ProcessLookupError(f"process {pid} has ended")
    total, queue = 0, [pid]
    while queue:
        current = queue.pop()
        total += ticks.get(current, 0)
        queue += parents.get(current, [])
    return total * tick_us
