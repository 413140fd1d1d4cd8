"""Drives a search of this project in a world, as a campaign would."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from functools import lru_cache
from itertools import count
from typing import Any

from benchmarks.search.findings import Finding, Said
from benchmarks.search.machine import Machine
from dsbisect.searching import Answer, History, Question, Search
from dsharness.model import Boundary, Sample

CONSTANT: dict[str, Any] = {
    "campaign_id": "c",
    "arm_id": "a",
    "workload_id": "w",
    "image_key": "k",
    "duration_s": 3.0,
    "operations": 100,
    "client_cpu_us_per_op": 100.0,
    "calibrator_us": 1000.0,
    "steal_pct": 0.0,
    "errors": 0,
    "per_second": (1.0,),
    "invalid": (),
    "log": "",
}


@lru_cache(maxsize=8)
def line_of(n: int) -> tuple[str, ...]:
    return tuple(f"c{at}" for at in range(n))


def place(name: str) -> int:
    return int(name[1:])


def drive(search: Search, machine: Machine, step_s: list[float]) -> Finding:
    """Adds the seconds that the search thought for each step to ``step_s``."""
    question = Question(series_id="s", line=line_of(machine.world.n), workload_id="w", arm_id="a")
    samples: dict[str, tuple[Sample, ...]] = {}
    unmeasurable: dict[str, str] = {}
    serial = count()
    while True:
        before = time.perf_counter()
        step = search.next_step(question, History(samples=samples, unmeasurable=unmeasurable))
        step_s.append(time.perf_counter() - before)
        if isinstance(step, Answer):
            return read(step.boundary)
        for name in step.candidates:
            value = machine.run(place(name))
            if value is None:
                unmeasurable[name] = "does not build"
                break
            made = _sample(name, value, step.turn, next(serial))
            samples[name] = (*samples.get(name, ()), made)


def read(boundary: Boundary) -> Finding:
    """A boundary in the words of the benchmark."""
    suspects, also = _places(boundary.suspects), _places(boundary.also)
    for each in boundary.steps:
        also |= frozenset(range(place(each.before) + 1, place(each.after) + 1))
    said = {"none": Said.NONE, "unknown": Said.UNDECIDED}.get(boundary.direction, Said.DRIFT)
    if boundary.found:
        said = Said.STEP
    return Finding(
        said=said,
        named=suspects if boundary.found else frozenset(),
        also=also - suspects,
        suspects=suspects,
        confidence=boundary.confidence,
    )


def _places(names: Iterable[str]) -> frozenset[int]:
    return frozenset(place(name) for name in names)


def _sample(name: str, value: float, turn: int, serial: int) -> Sample:
    """Unchecked, for speed: thousands of worlds are played."""
    return Sample.model_construct(
        id=f"{name}/{serial}",
        row_id=name,
        started_at=f"{serial:06}",
        server_cpu_us_per_op=math.exp(value),
        rate_per_s=math.exp(-value),
        workload={"turn": turn},
        **CONSTANT,
    )
