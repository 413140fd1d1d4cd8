"""How fast the patched server is under one workload, what that costs in memory, and what is lost.

A leak is what operations leave more in memory than with stock: many of them, on few users. With few
users the server's caches are full at once, so that what still grows is lost. The allocator takes
memory in steps, so only many operations together tell how much each of them keeps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dsharness.machine.host import machine_id
from dsharness.measure.metric import Metric
from dsharness.measure.metrics import (
    COST,
    CPU,
    FAULTS,
    GROWTH,
    INSTRUCTIONS,
    MEMORY,
    MEMORY_AT_REST,
    RATE,
)
from dsharness.model import Sample, Workload
from dsresults.number_text import milliseconds, significant, whole
from dsvalidate.check import Check, Gate, Status
from dsvalidate.performs_gate.margin import (
    MarginTest,
    Pairs,
    change_text,
    compared,
    middle,
    slower_pct,
    verdict_text,
)
from dsvalidate.performs_gate.paired_samples import (
    GIVE_MORE,
    SampledPairs,
    SpeedQuestion,
    opened_lab,
    sampled_pairs,
)
from dsvalidate.step import MEASURED, Step

# How far a ratio of two counts strays, with a margin: 0.3 % for PBKDF2, where almost all
# instructions are the hash's; more where an operation is short (docs/validate.md).
STRAY_PCT = 0.5
FEW_INSTRUCTIONS = 10_000_000  # of an operation
FEW_STRAY_PCT = 3.0


@dataclass(frozen=True, kw_only=True)
class InstructionRatio:
    """How many instructions an operation takes, of both sides."""

    stock: float
    patched: float

    @property
    def slower_pct(self) -> float:
        return 100 * (self.patched / self.stock - 1)

    @property
    def interval(self) -> tuple[float, float]:
        stray = STRAY_PCT if min(self.stock, self.patched) > FEW_INSTRUCTIONS else FEW_STRAY_PCT
        return (self.slower_pct - stray, self.slower_pct + stray)

    @property
    def text(self) -> str:
        return f"{change_text(self.interval)} by instructions"

    @property
    def figures(self) -> dict[str, str | int | float]:
        return {
            "instructions of an operation, stock": whole(self.stock),
            "instructions of an operation, patched": whole(self.patched),
        }


def instruction_ratio(question: SpeedQuestion, workload: Workload) -> InstructionRatio | None:
    """Count both sides; None where a server could not be counted: no reason to refuse it."""
    with opened_lab(question, metric=INSTRUCTIONS.name) as lab:
        sampled = sampled_pairs(question, lab, workload, bool, most=1, metric=INSTRUCTIONS.name)
    values = [
        (patched.value(INSTRUCTIONS.name), stock.value(INSTRUCTIONS.name))
        for patched, stock in sampled.pairs
    ]
    counts = [
        InstructionRatio(patched=patched, stock=stock)
        for patched, stock in values
        if patched and stock
    ]
    return counts[0] if counts else None


MORE_RESIDENT = 0.1  # of stock's
MORE_FAULTS = 1.0  # an operation


def memory_checks(workload: Workload, pairs: Pairs) -> list[Check]:
    """Compare what is resident, and page faults; no check where neither could be read."""
    figures = {
        metric: [middle([pair[side] for pair in pairs], metric) for side in (0, 1)]
        for metric in (MEMORY_AT_REST, MEMORY, FAULTS)
    }
    larger = [
        f"{metric.title} {significant(patched)} {metric.unit} instead of {significant(stock)}"
        for metric, (patched, stock) in figures.items()
        if _larger(metric, patched, stock)
    ]
    if all(math.isnan(patched) for patched, _ in figures.values()):
        return []
    check = Gate.PERFORMS.check(
        f"memory-{workload.id}",
        Status.WARNED if larger else Status.PASSED,
        f"{workload.title}: "
        + ("; ".join(larger) if larger else "memory and page faults are as with stock"),
        advice="see whether that is meant",
        figures={
            f"{metric.label}, {side}": f"{significant(value)} {metric.unit}"
            for metric, medians in figures.items()
            for side, value in zip(("patched", "stock"), medians, strict=True)
        },
    )
    return [check]


def _larger(metric: Metric, patched: float, stock: float) -> bool:
    least = MORE_FAULTS if metric is FAULTS else MORE_RESIDENT * stock
    return patched - stock > least


FIRST_LOOK = 12  # pairs, before instructions are counted
SECONDS = 200.0


def workload_step(question: SpeedQuestion, workload: Workload) -> Step:
    """Make a workload's step: its checks of speed and of memory come from the same samples."""
    limits = [question.margin_pct, question.max_pairs, machine_id()]

    return Step(
        gate=Gate.PERFORMS,
        name=f"speed-{workload.id}",
        title=f"comparing the speed of {workload.title}",
        inputs=[*limits, workload.model_dump(mode="json")],
        procedures=MEASURED,
        seconds=SECONDS,
        run=_Speed(question, workload).checks,
    )


class _Speed:
    """One workload's comparison."""

    def __init__(self, question: SpeedQuestion, workload: Workload) -> None:
        self._question = question
        self._workload = workload
        self._name = f"speed-{workload.id}"

    def checks(self) -> list[Check]:
        sampled, ratio = self._sampled(min(FIRST_LOOK, self._question.max_pairs)), None
        if not sampled.refused and not self._times(sampled.pairs).decided:
            ratio = instruction_ratio(self._question, self._workload)
            if self._by_instructions(sampled.pairs, ratio) is None:
                sampled = self._sampled(self._question.max_pairs)
        if sampled.refused:
            return [self._refused(sampled)]
        return [
            self._speed(sampled, ratio),
            *self._witness(sampled),
            *memory_checks(self._workload, sampled.pairs),
        ]

    def _sampled(self, most: int) -> SampledPairs:
        with opened_lab(self._question) as lab:
            return sampled_pairs(self._question, lab, self._workload, self._enough, most)

    def _times(self, pairs: Pairs) -> MarginTest:
        return compared(slower_pct(COST, pairs), self._question.margin_pct)

    def _enough(self, pairs: Pairs) -> bool:
        return self._times(pairs).decided

    def _by_instructions(self, pairs: Pairs, counted: InstructionRatio | None) -> MarginTest | None:
        """Where the times leave it open: what the count says, unless the times contradict it."""
        if counted is None:
            return None
        low, high = self._times(pairs).interval
        if not low <= counted.slower_pct <= high:
            return None
        by_count = MarginTest(interval=counted.interval, margin=self._question.margin_pct)
        return by_count if by_count.decided else None

    def _speed(self, sampled: SampledPairs, counted: InstructionRatio | None) -> Check:
        times = self._times(sampled.pairs)
        deciding = (
            times if times.decided else self._by_instructions(sampled.pairs, counted) or times
        )
        by = "" if times.decided or not deciding.decided else "; the count of instructions decides"
        reasons = [
            f"{change_text(times.interval)} by CPU time in {len(sampled.pairs)} pairs of runs"
        ]
        if counted is not None:
            reasons.append(f"{counted.text}{by}")
        status = {"worse": Status.FAILED, "undecided": Status.INCONCLUSIVE}.get(
            deciding.word, Status.PASSED
        )
        return Gate.PERFORMS.check(
            self._name,
            status,
            f"{self._workload.title}: {verdict_text(deciding)} ({'; '.join(reasons)})",
            advice=_advice(status, deciding),
            figures=self._figures(sampled, counted),
        )

    def _figures(
        self, sampled: SampledPairs, counted: InstructionRatio | None
    ) -> dict[str, str | int | float]:
        patched, stock = _sides(sampled.pairs)
        figures: dict[str, str | int | float] = {
            "CPU of an operation, stock": milliseconds(middle(stock, CPU)),
            "CPU of an operation, patched": milliseconds(middle(patched, CPU)),
            "operations a second, stock": round(middle(stock, RATE)),
            "operations a second, patched": round(middle(patched, RATE)),
            "pairs of runs": len(sampled.pairs),
        }
        return figures | (counted.figures if counted else {})

    def _witness(self, sampled: SampledPairs) -> list[Check]:
        """CPU time does not see locks and waiting: the rate does."""
        usable = [pair for pair in sampled.pairs if not any(sample.load_bound for sample in pair)]
        rate = compared(slower_pct(RATE, usable), 5 * self._question.margin_pct)
        if rate.word != "worse" or self._times(sampled.pairs).word == "worse":
            return []
        return [
            Gate.PERFORMS.check(
                f"rate-{self._workload.id}",
                Status.WARNED,
                f"{self._workload.title}: {change_text(rate.interval)} by rate, though not "
                "by CPU time",
                advice="look for locks and for waiting: the server is idle while clients wait",
            )
        ]

    def _refused(self, sampled: SampledPairs) -> Check:
        latest = next(
            sample for sample in reversed(sampled.samples) if sample.candidate_id == sampled.refused
        )
        side = "stock" if sampled.refused == self._question.sides.row.id else "patched"
        fault = side == "patched" and not sampled.disturbed
        return Gate.PERFORMS.check(
            self._name,
            Status.FAILED if fault else Status.INCONCLUSIVE,
            f"{self._workload.title}: no usable run of the {side} server: "
            + "; ".join(latest.invalid),
            advice="read the log" if fault else GIVE_MORE,
            evidence=(latest.log,) if latest.log else (),
        )


def _advice(status: Status, slower: MarginTest) -> str:
    """A margin that accepts it lies above the interval, not only above the margin of today."""
    if status is Status.FAILED:
        return (
            "find out what costs the time: `dsbisect bisect commits` over the patch's commits, "
            f"or accept it with --margin {math.floor(slower.interval[1]) + 1}"
        )
    return GIVE_MORE if status is Status.INCONCLUSIVE else ""


def _sides(pairs: Pairs) -> tuple[list[Sample], list[Sample]]:
    return [patched for patched, _ in pairs], [stock for _, stock in pairs]


LEAK_BYTES = 200.0  # an operation
SLOW_LEAK_BYTES = 600.0  # where operations are so slow that the first pairs hold too few
FIRST_PAIRS = 20
ALLOCATOR_BYTES = 256 * 1024  # two steps of malloc's
RUN_S, LONGEST_RUN_S = 6.0, 12.0


def lost_memory_step(question: SpeedQuestion) -> Step:
    """Make the step, with the workload of the fewest users."""
    few = min(question.workloads, key=lambda workload: workload.distinct_entries or math.inf)
    long = few.model_copy(update={"duration_s": RUN_S, "most_s": LONGEST_RUN_S})

    def run() -> Sequence[Check]:
        with opened_lab(question) as lab:
            sampled = sampled_pairs(
                question, lab, long, lambda pairs: leak_of(pairs).decided, question.max_pairs
            )
        return [_leak_check(sampled.pairs)]

    return Step(
        gate=Gate.PERFORMS,
        name="leak",
        title="looking for a leak of memory",
        seconds=60.0,
        procedures=MEASURED,
        inputs=[question.max_pairs, machine_id(), long.model_dump(mode="json")],
        run=run,
    )


def leak_of(pairs: Pairs) -> MarginTest:
    """Estimate the bytes that an operation leaves, more than stock; the first pair fills caches."""
    patched, stock = (_kept([pair[side] for pair in pairs[1:]]) for side in (0, 1))
    more = (patched[0] - stock[1], patched[1] - max(0.0, stock[0]))
    slow = len(pairs) > FIRST_PAIRS and more[0] <= LEAK_BYTES
    return MarginTest(interval=more, margin=SLOW_LEAK_BYTES if slow else LEAK_BYTES)


def _kept(samples: Sequence[Sample]) -> tuple[float, float]:
    """Bytes an operation, at least and at most."""
    growths = [(s.value(GROWTH.name), s.operations) for s in samples]
    gained = sum(growth * count for growth, count in growths if growth is not None)
    operations = sum(count for growth, count in growths if growth is not None)
    if not operations:
        return (-math.inf, math.inf)
    return ((gained - ALLOCATOR_BYTES) / operations, (gained + ALLOCATOR_BYTES) / operations)


def _leak_check(pairs: Pairs) -> Check:
    leak = leak_of(pairs)
    low, high = leak.interval
    operations = [whole(sum(pair[side].operations for pair in pairs[1:])) for side in (0, 1)]
    after = f"after {operations[0]} operations, and {operations[1]} with stock"
    if leak.word == "worse":
        status = Status.FAILED
        rest_bytes = f"{low:.0f} to {high:.0f} bytes"
        sentence = f"every operation leaves {rest_bytes} more in memory than with stock ({after})"
    elif leak.decided:
        status = Status.PASSED
        sentence = f"no operation leaves {leak.margin:g} bytes or more than with stock ({after})"
    else:
        status = Status.INCONCLUSIVE
        sentence = f"a leak of {leak.margin:g} bytes is neither shown nor excluded {after}"
    advice = {
        Status.FAILED: "look for what is not freed: run the server under valgrind's memcheck",
        Status.INCONCLUSIVE: GIVE_MORE,
    }
    return Gate.PERFORMS.check("leak", status, sentence, advice=advice.get(status, ""))
