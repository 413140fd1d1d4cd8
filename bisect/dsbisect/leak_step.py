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
ALLOCATOR_BYTES = 256 * 1024  # two steps of malloc's
RUN_S, LONGEST_RUN_S = 6.0, 12.0
SECONDS = 60.0

Pairs = Sequence[Mapping[str, Sample]]  # the sample of each side, by its name


def leak_step(question: SpeedQuestion, play: ComparePlay) -> Step:
    """Make the step, with the workload of the fewest users."""
    few = min(question.workloads, key=lambda load: load.distinct_entries or math.inf)
    load = few.model_copy(update={"duration_s": RUN_S, "most_s": LONGEST_RUN_S})

    def run() -> Sequence[Check]:
        question.alone()
        return [leak_check(leak_pairs(play, load, question.max_pairs), play.sides.names)]

    return Step(
        gate=Gate.PERFORMS,
        name="leak",
        title="looking for a leak of memory",
        seconds=SECONDS,
        procedures=MEASURED,
        inputs=[question.max_pairs, machine_id(), load.model_dump(mode="json")],
        run=run,
    )


def leak_pairs(play: ComparePlay, load: Workload, most: int) -> Pairs:
    """Measure pairs until a leak is shown or excluded; what an earlier run measured counts."""
    names = play.sides.names

    def missing(history: History) -> int:
        samples = [sample for name in names for sample in history.of(name)]
        pairs = whole_turns(names, samples)
        over = Leak.of(pairs, names).decided or any(gave_up(history.of(name)) for name in names)
        return 0 if over else most - len(pairs)

    with play.opened((Judged(load=load, metrics=(COST.name,)),)) as runs:
        runs.refuse_failed()
        rounds = Rounds(missing=missing, open_end=True)
        return whole_turns(names, runs.fresh(load, names, rounds))


@dataclass(frozen=True, kw_only=True)
class Leak:
    """The bytes that an operation leaves, more than stock: an interval."""

    low: float
    high: float
    limit: float  # what is less is none

    @classmethod
    def of(cls, pairs: Pairs, names: tuple[str, str]) -> Leak:
        """Estimate it; the first pair fills caches."""
        stock, patched = (_kept([pair[name] for pair in pairs[1:]]) for name in names)
        low, high = patched[0] - stock[1], patched[1] - max(0.0, stock[0])
        slow = len(pairs) > FIRST_PAIRS and low <= LEAK_BYTES
        return cls(low=low, high=high, limit=SLOW_LEAK_BYTES if slow else LEAK_BYTES)

    @property
    def decided(self) -> bool:
        return self.low > self.limit or self.high < self.limit


def _kept(samples: Sequence[Sample]) -> tuple[float, float]:
    """Bytes an operation, at least and at most."""
    growths = [(sample.value(GROWTH.name), sample.operations) for sample in samples]
    gained = sum(growth * count for growth, count in growths if growth is not None)
    operations = sum(count for growth, count in growths if growth is not None)
    if not operations:
        return (-math.inf, math.inf)
    return ((gained - ALLOCATOR_BYTES) / operations, (gained + ALLOCATOR_BYTES) / operations)


def leak_check(pairs: Pairs, names: tuple[str, str]) -> Check:
    """Say whether there is one."""
    leak = Leak.of(pairs, names)
    stock, patched = (whole(sum(pair[name].operations for pair in pairs[1:])) for name in names)
    after = f"after {patched} operations, and {stock} with stock"
    status, sentence, advice = (
        Status.INCONCLUSIVE,
        f"a leak of {leak.limit:g} bytes is neither shown nor excluded {after}",
        GIVE_MORE,
    )
    if leak.low > leak.limit:
        status, advice = (
            Status.FAILED,
            "look for what is not freed: run the server under valgrind's memcheck",
        )
        more = f"{leak.low:.0f} to {leak.high:.0f} bytes more in memory than with stock"
        sentence = f"every operation leaves {more} ({after})"
    elif leak.decided:
        status = Status.PASSED
        sentence = f"no operation leaves {leak.limit:g} bytes or more than with stock ({after})"
    return Gate.PERFORMS.check("leak", status, sentence, advice=advice)
