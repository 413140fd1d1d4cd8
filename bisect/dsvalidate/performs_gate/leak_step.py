"""Whether operations leave more in memory than with stock: many of them, on few users.

With few users the server's caches are full at once, so that what still grows is lost. The allocator
takes memory in steps, so only many operations together tell how much each of them keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dsharness.machine.host import machine_id
from dsharness.measure.metrics import GROWTH
from dsharness.model import Sample
from dsresults.number_text import whole
from dsvalidate.check import Check, Gate, Status
from dsvalidate.performs_gate.margin import MarginTest, Pairs
from dsvalidate.performs_gate.paired_samples import (
    GIVE_MORE,
    SpeedQuestion,
    opened_lab,
    sampled_pairs,
)
from dsvalidate.step import Step
from dsvalidate.step_code import MEASURED

LEAK_BYTES = 200.0  # an operation
SLOW_LEAK_BYTES = 600.0  # where operations are so slow that the first pairs hold too few
FIRST_PAIRS = 20
ALLOCATOR_BYTES = 256 * 1024  # two steps of malloc's
RUN_S, LONGEST_RUN_S = 6.0, 12.0


def lost_memory_step(question: SpeedQuestion) -> Step:
    """Make the step, with the workload of the fewest users."""
    few = min(question.workloads, key=lambda each: each.distinct_entries or math.inf)
    long = few.model_copy(update={"duration_s": RUN_S, "most_s": LONGEST_RUN_S})

    def run() -> Sequence[Check]:
        with opened_lab(question) as lab:
            found = sampled_pairs(
                question, lab, long, lambda pairs: leak_of(pairs).decided, question.max_pairs
            )
        return [_check(found.pairs)]

    return Step(
        gate=Gate.PERFORMS, name="leak", title="looking for a leak of memory", seconds=60.0,
        procedures=MEASURED,
        inputs=[question.max_pairs, machine_id(), long.model_dump(mode="json")], run=run,
    )  # fmt: skip


def leak_of(pairs: Pairs) -> MarginTest:
    """Estimate the bytes that an operation leaves, more than stock; the first pair fills caches."""
    patched, stock = (_kept([pair[side] for pair in pairs[1:]]) for side in (0, 1))
    more = (patched[0] - stock[1], patched[1] - max(0.0, stock[0]))
    slow = len(pairs) > FIRST_PAIRS and more[0] <= LEAK_BYTES
    return MarginTest(interval=more, margin=SLOW_LEAK_BYTES if slow else LEAK_BYTES)


def _kept(samples: Sequence[Sample]) -> tuple[float, float]:
    """Bytes an operation, at least and at most."""
    known = [(s.value(GROWTH.name), s.operations) for s in samples]
    gained = sum(each * count for each, count in known if each is not None)
    operations = sum(count for each, count in known if each is not None)
    if not operations:
        return (-math.inf, math.inf)
    return (
        (gained - ALLOCATOR_BYTES) / operations,
        (gained + ALLOCATOR_BYTES) / operations,
    )


def _check(pairs: Pairs) -> Check:
    leak = leak_of(pairs)
    low, high = leak.interval
    operations = [whole(sum(pair[side].operations for pair in pairs[1:])) for side in (0, 1)]
    after = f"after {operations[0]} operations, and {operations[1]} with stock"
    if leak.word == "worse":
        status = Status.FAILED
        kept = f"{low:.0f} to {high:.0f} bytes"
        found = f"every operation leaves {kept} more in memory than with stock ({after})"
    elif leak.decided:
        status = Status.PASSED
        found = f"no operation leaves {leak.margin:g} bytes or more than with stock ({after})"
    else:
        status = Status.INCONCLUSIVE
        found = f"a leak of {leak.margin:g} bytes is neither shown nor excluded {after}"
    advice = {
        Status.FAILED: "look for what is not freed: run the server under valgrind's memcheck",
        Status.INCONCLUSIVE: GIVE_MORE,
    }
    return Check(
        gate=Gate.PERFORMS, name="leak", status=status, found=found, advice=advice.get(status, ""),
    )  # fmt: skip
