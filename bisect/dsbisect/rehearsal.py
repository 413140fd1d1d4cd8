"""A search let loose on a line that is made up: its truth is known. Core pure logic, no I/O."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dsbisect.searching import Answer, History, Question, Search
from dsharness.model import Sample

WORKLOAD = "rehearsed"


@dataclass(frozen=True, kw_only=True)
class Rehearsed:
    """How one search went."""

    runs: int
    builds: int
    named: bool
    right: bool

    @property
    def wrong(self) -> bool:
        return self.named and not self.right


def rehearse(search: Search, candidates: int, drop: float, noise: float, seed: int) -> Rehearsed:
    """A step of ``drop`` (a log) at a place the seed decides, Gaussian noise on the log scale."""
    chance = np.random.default_rng([seed, candidates])
    line = tuple(f"c{number}" for number in range(candidates))
    step = int(chance.integers(1, candidates))
    question = Question(series_id="plan", line=line, workload_id=WORKLOAD, arm_id="default")
    index = {name: at for at, name in enumerate(line)}
    taken: dict[str, tuple[Sample, ...]] = {}
    runs = 0
    while not isinstance(found := search.next_step(question, History(samples=taken)), Answer):
        for name in found.candidates:
            value = drop * (index[name] >= step) + noise * chance.normal()
            sample = _sample(name, math.exp(value), found.turn, runs)
            taken[name] = (*taken.get(name, ()), sample)
            runs += 1
    boundary = found.boundary
    named = boundary.found and boundary.after is not None
    return Rehearsed(
        runs=runs, builds=len(taken), named=named, right=named and line[step] in boundary.suspects
    )


def _sample(name: str, value: float, turn: int, number: int) -> Sample:
    """Made without validation: a rehearsal takes thousands."""
    return Sample.model_construct(
        id=f"{name}/{number}",
        campaign_id="plan",
        row_id=name,
        arm_id="default",
        workload_id=WORKLOAD,
        image_key="",
        started_at=f"{number:06}",
        duration_s=1.0,
        operations=1,
        rate_per_s=1 / value,
        server_cpu_us_per_op=value,
        client_cpu_us_per_op=None,
        calibrator_us=1.0,
        steal_pct=0.0,
        errors=0,
        per_second=(),
        invalid=(),
        workload={"turn": turn},
        log="",
    )
