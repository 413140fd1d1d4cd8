"""CPU time and memory of a container's processes, on cgroup v1, v2 or without either."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROC = Path("/proc")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")  # the step in which the kernel tells times of a process
PARENT, USER, SYSTEM, BEGUN = (
    4,
    14,
    15,
    22,
)  # of the fields of /proc/PID/stat, as proc(5) numbers them


@dataclass(frozen=True, kw_only=True)
class ProcessTree:
    """A process and its descendants at one moment; what is asked of them is their sum."""

    pids: tuple[int, ...]
    stats: tuple[tuple[int, ...], ...]  # the fields of each one's stat
    proc: Path = PROC

    @property
    def cpu_us(self) -> float:
        """CPU time so far, in the kernel's steps of 10 ms."""
        return (self.stat(USER) + self.stat(SYSTEM)) * 1_000_000 * TICK_S

    def stat(self, field: int) -> int:
        """Return a field of /proc/PID/stat, by its number in proc(5)."""
        return sum(fields[field - 1] for fields in self.stats)

    def line(self, name: str, files: str) -> int:
        """Return the number after ``name:`` in such files below /proc/PID, as they are now.

        What ended meanwhile counts nothing. OSError when no file has such a line.
        """
        numbers = [
            int(line.split()[1])
            for pid in self.pids
            for file in (self.proc / str(pid)).glob(files)
            for line in _lines(file)
            if line.startswith(f"{name}:")
        ]
        if not numbers:
            raise FileNotFoundError(f"{files}: no line {name}")
        return sum(numbers)

    def named(self, name: str) -> ProcessTree:
        """Return those of them that are called so; a process may give itself any name."""
        kept = {
            pid: fields
            for pid, fields in zip(self.pids, self.stats, strict=True)
            if _lines(self.proc / str(pid) / "comm")[:1] == [name]
        }
        return ProcessTree(pids=tuple(kept), stats=tuple(kept.values()), proc=self.proc)

    def count(self, files: str) -> int:
        """Return how many such files there are below /proc/PID now; OSError when there is none."""
        number = sum(1 for pid in self.pids for _ in (self.proc / str(pid)).glob(files))
        if not number:
            raise FileNotFoundError(f"{files}: none")
        return number


def process_tree(pid: int, proc: Path = PROC) -> ProcessTree:
    """Return the sum of this process and its descendants; ProcessLookupError when it has ended."""
    stats = _stats(proc)
    if pid not in stats:
        raise ProcessLookupError(f"process {pid} has ended")
    children: dict[int, list[int]] = {}
    for child, fields in stats.items():
        children.setdefault(fields[PARENT - 1], []).append(child)
    pids, queue = [], [pid]
    while queue:
        current = queue.pop()
        pids.append(current)
        queue += children.get(current, [])
    return ProcessTree(pids=tuple(pids), stats=tuple(stats[child] for child in pids), proc=proc)


def begun_s(pid: int, proc: Path = PROC) -> float:
    """Return when a process began, by CLOCK_BOOTTIME, to 10 ms; OSError if it has ended."""
    fields = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    return int(fields.rpartition(")")[2].split()[BEGUN - 3]) * TICK_S


def _lines(file: Path) -> list[str]:
    """None of a thread that has ended; a process may give itself any name but a line's end."""
    with contextlib.suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").split("\n")
    return []


def _stats(proc: Path) -> dict[int, tuple[int, ...]]:
    """What each process uses; its name and its state, the only ones that are no number, are 0."""
    stats: dict[int, tuple[int, ...]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we were looking
        pid = int(stat.parent.name)
        stats[pid] = (pid, 0, 0, *map(int, fields[1:]))
    return stats


@dataclass(frozen=True, kw_only=True)
class UsageMeter:
    """Reads what a container uses, and says by which means it reads the CPU time."""

    source: str  # "cgroup-v2", "cgroup-v1" or "proc"
    path: Path
    pid: int

    @property
    def step_us(self) -> float:
        """The step of what it reads: user and system time are each told in ticks."""
        return 2 * TICK_S * 1e6 if self.source == "proc" else 0.0

    def used_us(self) -> float:
        """Return microseconds of CPU time so far; OSError after the container has ended."""
        if self.source == "cgroup-v2":
            fields = dict(line.split() for line in self._text("cpu.stat").splitlines())
            return float(fields["usage_usec"])
        if self.source == "cgroup-v1":
            return int(self._text("cpuacct.usage")) / 1000
        return process_tree(self.pid).cpu_us

    def resident_kib(self) -> int:
        """Return the memory that its processes have now; OSError after the container has ended."""
        return sum(map(_resident_pages, self._pids())) * (os.sysconf("SC_PAGE_SIZE") // 1024)

    def waits_ns(self) -> Mapping[str, int]:
        """Return how long each thread has waited for a CPU so far; empty where nobody counts it."""
        return {
            file.parent.name: parse_wait_ns(lines[0])
            for pid in self._pids()
            for file in (PROC / pid).glob("task/*/schedstat")
            if (lines := _lines(file))
        }

    def _pids(self) -> Iterable[str]:
        if self.source == "proc":
            return map(str, process_tree(self.pid).pids)
        files = self.path.rglob("cgroup.procs")  # systemd has cgroups of its own below
        return [pid for file in files for pid in file.read_text(encoding="utf-8").split()]

    def _text(self, name: str) -> str:
        return (self.path / name).read_text(encoding="utf-8")


def parse_wait_ns(schedstat: str) -> int:
    """Return the time that a thread could have run and had no CPU: the second of three numbers."""
    return int(schedstat.split()[1])


def waited_s(before: Mapping[str, int], after: Mapping[str, int]) -> float | None:
    """Return how long threads waited, all together; None where nobody counts it.

    One that came meanwhile counts whole, one that went counts nothing.
    """
    waits_ns = (wait_ns - before.get(thread, 0) for thread, wait_ns in after.items())
    return sum(max(0, wait_ns) for wait_ns in waits_ns) / 1e9 if before and after else None


def _resident_pages(pid: str) -> int:
    """Return None of a process that has ended."""
    with contextlib.suppress(OSError):
        return int((PROC / pid / "statm").read_text(encoding="utf-8").split()[1])
    return 0


def frozen_file(pid: int, container_id: str, proc: Path = PROC) -> Path | None:
    """Return the file that says whether a container is paused; None where there is no such file."""
    for controller, name in (("freezer", "freezer.state"), ("", "cgroup.freeze")):
        folder = own_folder(pid, container_id, controller, proc)
        if folder is not None and (folder / name).is_file():
            return folder / name
    return None


def is_frozen(file: Path | None) -> bool:
    try:
        state = file.read_text(encoding="utf-8").strip() if file else ""
    except OSError:
        return False  # the container has ended, which is noticed elsewhere
    return state not in ("", "THAWED", "0")


def meter_for(pid: int, container_id: str, proc: Path = PROC) -> UsageMeter:
    """The best meter for a container; a cgroup counts only when it is the container's own."""
    for source, controller, name in (
        ("cgroup-v1", "cpuacct", "cpuacct.usage"),
        ("cgroup-v2", "", "cpu.stat"),
    ):
        folder = own_folder(pid, container_id, controller, proc)
        if folder is not None and (folder / name).is_file():
            return UsageMeter(source=source, path=folder, pid=pid)
    return UsageMeter(source="proc", path=proc / str(pid), pid=pid)


def own_folder(pid: int, container_id: str, controller: str, proc: Path = PROC) -> Path | None:
    """Where the files of a container's own cgroup are; None if it has none, or none to be seen."""
    inside = own_cgroup(
        (proc / str(pid) / "cgroup").read_text(encoding="utf-8"), controller, container_id
    )
    mount = cgroup_mount((proc / "self" / "mountinfo").read_text(encoding="utf-8"), controller)
    if inside is None or mount is None:
        return None
    place = PurePosixPath("/", inside)
    # In a container without a cgroup namespace, only a part of the tree is mounted.
    return mount.point / place.relative_to(mount.top) if place.is_relative_to(mount.top) else None


def own_cgroup(membership: str, controller: str, container_id: str) -> str | None:
    """Return the container's path below the controller's mount ("" is v2); None if it is shared."""
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(",") and container_id[:12] in path:
            return path.lstrip("/")
    return None


@dataclass(frozen=True, kw_only=True)
class CgroupMount:
    """Where a tree of cgroups is mounted, and which of them is at its top."""

    point: Path
    top: str


def cgroup_mount(mountinfo: str, controller: str) -> CgroupMount | None:
    """Return the mount of a v1 controller, or of v2 for ""."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = ([*after.split(), "", "", ""])[:3]
        fits = kind == "cgroup2" if not controller else kind == "cgroup"
        if fits and (not controller or controller in options.split(",")):
            top, point = before.split()[3:5]
            return CgroupMount(point=Path(point), top=top)
    return None


def cgroup_trees(proc: Path = PROC) -> tuple[str, ...]:
    """Return where trees of cgroups are, and with which controllers: what a runtime has to like."""
    lines = (proc / "self" / "mounts").read_text(encoding="utf-8").splitlines()
    mounts = [(kind, Path(point)) for _, point, kind, *_ in map(str.split, lines)]
    trees = [(kind, point) for kind, point in mounts if kind.startswith("cgroup")]
    return tuple(sorted(f"{kind} {point} {_controllers(point)}".rstrip() for kind, point in trees))


def _controllers(tree: Path) -> str:
    """Return those of a tree of v2; of one of v1 its name tells them."""
    try:
        return (tree / "cgroup.controllers").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
