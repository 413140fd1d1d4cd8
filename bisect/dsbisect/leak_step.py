"""Whether operations leave more in memory than with stock: many of them, on few users.

With few users the server's caches are full at once, so that what still grows is lost. The allocator
takes memory in steps, so only many operations together tell how much each of them keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsbisect.compare_study import ComparePlay, Judged
from dsbisect.open_campaigns import gave_up, whole_turns
from dsharness.machine.host import machine_id
from dsharness.measure.metrics import COST, GROWTH
from dsharness.model import Sample, Workload
from dsresults.number_text import whole
from dssearch.planner import Rounds
from dssearch.question import History
from dsvalidate.check import Check, Gate, Status
from dsvalidate.step import MEASURED, Step
from dsvalidate.suite import GIVE_MORE, SpeedQuestion

LEAK_BYTES = 200.0  # an operation
SLOW_LEAK_BYTES = 600.0  # where operations are so slow that the first pairs hold too few
FIRST_PAIRS = 20
FILLING = 100  # operations
ALLOCATOR_BYTES = 256 * 1024  # two steps of malloc's
RUN_S, LONGEST_RUN_S = 6.0, 12.0


def leak_step(question: SpeedQuestion, play: ComparePlay) -> Step:
    """Make the step, with the workload of the fewest users."""
    few = min(question.workloads, key=lambda load: load.distinct_entries or math.inf)
    load = few.model_copy(update={"duration_s": RUN_S, "most_s": LONGEST_RUN_S})

    def run() -> Sequence[Check]:
        question.alone()
        return [measured_leak(play, load, question.max_pairs).check]

    return Step(
        gate=Gate.PERFORMS,
        name="leak",
        title="looking for a leak of memory",
        seconds=60.0,
        procedures=MEASURED,
        inputs=[question.max_pairs, machine_id(), load.model_dump(mode="json")],
        run=run,
    )


def measured_leak(play: ComparePlay, load: Workload, most: int) -> Leak:
    """Measure pairs until it is shown or excluded; what an earlier run measured counts."""
    names = play.sides.names

    def missing(history: History) -> int:
        samples = [sample for name in names for sample in history.of(name)]
        leak = Leak.of(whole_turns(names, samples), names)
        failing = any(gave_up(history.of(name)) for name in names)
        return 0 if failing or leak.status is not Status.INCONCLUSIVE else most - leak.pairs

    with play.opened((Judged(load=load, metrics=(COST.name,)),)) as runs:
        runs.refuse_failed()
        samples = runs.fresh(load, names, Rounds(missing=missing, open_end=True))
    return Leak.of(whole_turns(names, samples), names)


@dataclass(frozen=True, kw_only=True)
class Leak:
    """The bytes that an operation leaves, more than with stock: an interval."""

    low: float
    high: float
    pairs: int
    operations: tuple[int, int]  # of stock and of the patched side

    @classmethod
    def of(cls, turns: Sequence[Mapping[str, Sample]], names: tuple[str, str]) -> Leak:
        """Estimate it; the first operations fill caches."""
        later = _warm(turns, names)
        stock, patched = ([turn[name] for turn in later] for name in names)
        (least, most), (patched_least, patched_most) = _kept(stock), _kept(patched)
        return cls(
            low=patched_least - most,
            high=patched_most - max(0.0, least),
            pairs=len(turns),
            operations=(_operations(stock), _operations(patched)),
        )

    @property
    def limit(self) -> float:
        """What is less is no leak."""
        slow = self.pairs > FIRST_PAIRS and self.low <= LEAK_BYTES
        return SLOW_LEAK_BYTES if slow else LEAK_BYTES

    @property
    def status(self) -> Status:
        if self.low > self.limit:
            return Status.FAILED
        return Status.PASSED if self.high < self.limit else Status.INCONCLUSIVE

    @property
    def check(self) -> Check:
        stock, patched = map(whole, self.operations)
        after = f"after {patched} operations, and {stock} with stock"
        amount = f"{self.low:.0f} to {self.high:.0f} bytes"
        sentences = {
            Status.FAILED: f"every operation leaves {amount} more in memory than with stock",
            Status.PASSED: f"no operation leaves {self.limit:g} bytes or more than with stock",
        }
        still_open = f"a leak of {self.limit:g} bytes is neither shown nor excluded"
        advice = "look for what is not freed: run the server under valgrind's memcheck"
        return Gate.PERFORMS.check(
            "leak",
            self.status,
            f"{sentences.get(self.status, still_open)} ({after})",
            advice=advice if self.status is Status.FAILED else GIVE_MORE,
        )


def _warm(
    turns: Sequence[Mapping[str, Sample]], names: tuple[str, str]
) -> Sequence[Mapping[str, Sample]]:
    """Leave out those of each side's first operations: on a busy machine a run has few."""
    for number in range(1, len(turns)):
        done = (_operations([turn[name] for turn in turns[:number]]) for name in names)
        if min(done) >= FILLING:
            return turns[number:]
    return ()


def _operations(samples: Sequence[Sample]) -> int:
    return sum(sample.operations for sample in samples if GROWTH.name in sample.metrics)


def _kept(samples: Sequence[Sample]) -> tuple[float, float]:
    """Bytes an operation, at least and at most."""
    operations = _operations(samples)
    if not operations:
        return (-math.inf, math.inf)
    gained = sum((sample.value(GROWTH.name) or 0.0) * sample.operations for sample in samples)
    return ((gained - ALLOCATOR_BYTES) / operations, (gained + ALLOCATOR_BYTES) / operations)
