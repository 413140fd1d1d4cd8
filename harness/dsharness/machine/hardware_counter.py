"""Instructions of a server's processes, counted by the CPU itself: `perf stat`, where it can."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from dsharness.containers.lab_folders import scratch_folder
from dsharness.process.command import run
from dsharness.process.deadline import Deadline

EVENT = "instructions:u"
SEPARATOR = ","
PROBE_S = 20.0


@cache
def host_counts() -> bool:
    """Return whether this user may count, and the machine can: most virtual ones cannot."""
    if os.geteuid() != 0 or shutil.which("perf") is None:
        return False
    with scratch_folder("perf") as folder:
        out = Path(folder) / "count"
        result = run([*_stat(out), "--", "true"], deadline=Deadline.after(PROBE_S))
        return result.ok and parse_count(out) is not None


def counting(pids: Iterable[int], out: Path) -> tuple[str, ...]:
    """What a command is put behind, so that these processes are counted as long as it runs."""
    return (*_stat(out), "--pid", SEPARATOR.join(map(str, sorted(pids))), "--")


def parse_count(out: Path) -> int | None:
    """Return None for what perf could not count, or could count only for a part of the time."""
    try:
        lines = out.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split(SEPARATOR)
        if len(fields) > 4 and fields[2].startswith("instructions") and fields[0].isdigit():
            return int(fields[0]) if fields[4].startswith("100") else None
    return None


def _stat(out: Path) -> tuple[str, ...]:
    return ("perf", "stat", "--event", EVENT, "--field-separator", SEPARATOR, "--output", str(out))
