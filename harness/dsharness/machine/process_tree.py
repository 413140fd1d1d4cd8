"""What a process and its living descendants have used so far, as /proc tells it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
# Places in a line of /proc/PID/stat, counted from what follows the name (proc(5)).
PARENT, FAULTS, USER, SYSTEM, PAGES = 1, 7, 11, 12, 21


@dataclass(frozen=True, kw_only=True)
class ProcessTree:
    """The sum of all its processes."""

    cpu_us: float  # in the kernel's steps of 10 ms
    faults: int  # pages that the kernel had to find for it, without reading a disk
    resident_bytes: int
    pids: tuple[int, ...] = ()


def process_tree(pid: int, proc: Path = PROC) -> ProcessTree:
    """Of this process and its descendants; ProcessLookupError when it has ended."""
    every = _stats(proc)
    if pid not in every:
        raise ProcessLookupError(f"process {pid} has ended")
    children: dict[int, list[int]] = {}
    for child, fields in every.items():
        children.setdefault(fields[PARENT], []).append(child)
    pids, queue = [], [pid]
    while queue:
        current = queue.pop()
        pids.append(current)
        queue += children.get(current, [])
    tree = [every[each] for each in pids]
    tick_us = 1_000_000 / os.sysconf("SC_CLK_TCK")
    return ProcessTree(
        cpu_us=sum(fields[USER] + fields[SYSTEM] for fields in tree) * tick_us,
        faults=sum(fields[FAULTS] for fields in tree),
        resident_bytes=sum(fields[PAGES] for fields in tree) * os.sysconf("SC_PAGE_SIZE"),
        pids=tuple(pids),
    )


def _stats(proc: Path) -> dict[int, list[int]]:
    """By process; the state, the only field that is no number, is 0 here."""
    found = {}
    for stat in proc.glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we were looking
        found[int(stat.parent.name)] = [0, *map(int, fields[1 : PAGES + 1])]
    return found
