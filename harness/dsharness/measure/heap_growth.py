"""Memory of a server that stays after its operations, by where it was allocated: massif.

The server runs in valgrind. Between three snapshots of all its heap lie two runs of so many
operations; what both of them left behind, at the same place, is what stays. What a cache takes once
is only in one of them.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from dsharness.containers.container import Container
from dsharness.containers.engine import last_line
from dsharness.containers.lab_folders import scratch_folder
from dsharness.errors import InstanceError
from dsharness.measure.exact_count import counted_load
from dsharness.measure.exact_counters import Valgrind, control, function_name
from dsharness.measure.gate import count_objections
from dsharness.measure.sample import Bench, write_files
from dsharness.model import HeapGrowth, StayingHeap, Workload

DEPTH = 20  # frames from an allocation outwards
MASSIF = ("--tool=massif", "--threshold=0", f"--depth={DEPTH}", "--massif-out-file=/tmp/massif.out")
WITHIN = "under massif"
FIRST, MOST, RUN_S = 20, 400, 15.0  # operations; seconds of a run
MOST_SHOWN = 10
LEAST_BYTES = 1.0  # of an operation
MOST_BYTES = 128 << 20  # of a snapshot
SNAPSHOT = "/tmp/dsbisect-heap"  # noqa: S108 - inside the container
NODE = re.compile(
    r"^(?P<depth> *)n(?P<callers>\d+): (?P<bytes>\d+) (?:0x[0-9A-F]+: )?(?P<name>.*?)"
    r"(?: \((?:in )?(?P<where>[^()]*)\))?$"
)
ALLOCATORS = "(heap allocation functions)"
Place = tuple[str, ...]  # the function that allocated, then its callers


def in_massif(image: str) -> Valgrind:
    """Run a server's command so that snapshots can be taken."""
    return Valgrind(image=image, tool=MASSIF)


def take_heap_growth(bench: Bench, workload: Workload) -> HeapGrowth:
    """Return what two runs of the load both left behind, of a server in massif."""
    alone = workload.model_copy(update={"threads": 1})
    write_files(bench, alone, 0)
    _run(bench, alone, FIRST)  # it starts threads and fills caches
    began = time.monotonic()
    _run(bench, alone, FIRST)
    first_s = time.monotonic() - began
    operations = round(min(MOST, max(FIRST, RUN_S * FIRST / max(first_s, 0.01))))
    _run(bench, alone, operations)
    snapshots = [_snapshot(bench.instance.container)]
    for _ in range(2):
        _run(bench, alone, operations)
        snapshots.append(_snapshot(bench.instance.container))
    return HeapGrowth(
        candidate_id=bench.instance.candidate_id,
        workload_id=workload.id,
        operations=2 * operations,
        stays=staying(snapshots, operations),
    )


def _run(bench: Bench, workload: Workload, operations: int) -> None:
    counted_load(bench, workload, operations, count_objections, WITHIN)(())


def _snapshot(box: Container) -> Counter[Place]:
    control(box, f"detailed_snapshot {SNAPSHOT}", what="look at the heap")
    with scratch_folder("heap") as folder:
        heap_file = Path(folder) / "heap"
        result = box.execute("cat", SNAPSHOT, into=heap_file, into_bytes=MOST_BYTES)
        if not result.ok:
            raise InstanceError(f"the snapshot of the heap: {last_line(result)}", log=box.log)
        with heap_file.open(encoding="utf-8", errors="replace") as lines:
            return heap_of(lines)


def heap_of(lines: Iterable[str]) -> Counter[Place]:
    """Return how many bytes each place holds, of a snapshot: a tree from allocations outwards."""
    heap = Counter[Place]()
    for frames, held_bytes in _leaves(lines):
        heap[frames] += held_bytes
    return heap


def _leaves(lines: Iterable[str]) -> Iterator[tuple[Place, int]]:
    path: list[str] = []
    for line in lines:
        match = NODE.match(line.rstrip("\n"))
        if match is None:
            continue
        del path[len(match["depth"]) :]
        path.append(_name(match["name"], match["where"] or ""))
        if match["callers"] == "0" and int(match["bytes"]):
            yield tuple(name for name in path if name != ALLOCATORS), int(match["bytes"])


def _name(symbol: str, where: str) -> str:
    if symbol.startswith(ALLOCATORS):
        return ALLOCATORS
    return function_name(symbol, where)


def staying(snapshots: Iterable[Counter[Place]], operations: int) -> tuple[StayingHeap, ...]:
    """Return the places that grew in both runs, by the smaller growth, the largest first."""
    first, second, third = snapshots
    grown = {
        place: min(third[place] - second[place], second[place] - first[place]) / operations
        for place in third
    }
    largest = sorted(grown, key=lambda place: -grown[place])[:MOST_SHOWN]
    return tuple(
        StayingHeap(place=place, bytes_per_operation=grown[place])
        for place in largest
        if grown[place] >= LEAST_BYTES
    )
