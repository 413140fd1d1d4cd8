"""How a stored password explains what a bind costs: its scheme, its rounds, reused results."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dsharness.model import Facts
from dsharness.systems.ldap.stored_password import StoredPassword, stored_in
from dsresults.compare.comparison_table import Observed
from dsresults.explainers.explainer import Explainer, FactColumn, FactText
from dsresults.explainers.password_cache import avoids_hashing, reuse, spelled
from dsresults.number_text import milliseconds, significant, times
from dsresults.reasons.cost_steps import CostChange, StepPlace
from dsresults.reasons.reason import Confidence, Reason

ALL_OF_IT = 1.25  # a bind costs more than its hash, so the two factors never agree to the digit


def stored_change(place: StepPlace) -> Iterator[Reason]:
    """Say whether scheme and rounds explain the change under each workload."""
    before, after = map(stored_in, place.facts)
    if before is None or after is None or before == after:
        return
    work = _work(before, after)
    text = f"The stored password changes from {spelled(before)} to {spelled(after)}"
    text += f": {times(work.factor)} the {work.noun}. " if work else ". "
    same = before.scheme == after.scheme
    yield Reason(
        topic=place.name,
        text=text + " ".join(_account(place, each, work, same=same) for each in place.changes),
        confidence=Confidence.MEASURED,
        evidence=tuple(_evidence(place, change) for change in place.changes),
    )


@dataclass(frozen=True, kw_only=True)
class _Work:
    """How much more there is to compute, as far as the stored values say."""

    factor: float
    noun: str = "rounds"


def _work(before: StoredPassword, after: StoredPassword) -> _Work | None:
    if not before.rounds or not after.rounds:
        return None
    rounds = after.rounds / before.rounds
    if not before.memory_kib or not after.memory_kib:
        return _Work(factor=rounds)
    # Each round goes over all of the memory once.
    return _Work(factor=rounds * after.memory_kib / before.memory_kib, noun="rounds and memory")


def _account(place: StepPlace, change: CostChange, work: _Work | None, *, same: bool) -> str:
    cost = change.ratio.value
    begin = f"With {change.column.workload_id} it takes {times(cost)} the CPU time"
    free = _free(place, change)
    if free:
        return (
            f"{begin}, but {' and '.join(free)} hardly hashes under this load (see the reuse of "
            "results), so the rounds do not explain it."
        )
    if work is None:
        return f"{begin}."
    if same:
        return f"{begin}: {_same_scheme(cost, work)}."
    per_round = cost / work.factor
    word = "cheaper" if per_round < 1 else "dearer"
    return f"{begin}: each round is {times(max(per_round, 1 / per_round))} {word}."


def _same_scheme(cost: float, work: _Work) -> str:
    left = cost / work.factor
    if 1 / ALL_OF_IT <= left <= ALL_OF_IT:
        return f"the {work.noun} explain all of it"
    if math.log(cost) * math.log(work.factor) <= 0:
        return f"the {work.noun} do not explain it"
    more = "more" if abs(math.log(cost)) > abs(math.log(work.factor)) else "less"
    return f"{times(max(left, 1 / left))} {more} than the {work.noun} explain"


def _free(place: StepPlace, change: CostChange) -> list[str]:
    """Those of the two that were seen to check passwords without hashing."""
    return [
        observed.candidate
        for observed in (change.before, change.after)
        if avoids_hashing(place.comparison, change.column, observed.candidate)
    ]


def _evidence(place: StepPlace, change: CostChange) -> str:
    free = _free(place, change)
    each = [
        f"{one.candidate} {_cpu(one, hashes=one.candidate not in free)}"
        for one in (change.before, change.after)
        if one.server_cpu_us_per_op is not None
    ]
    text = f"{change.column.workload_id}: server CPU per operation {', '.join(each)}"
    text += f"; calibrated, after over before: {times(change.ratio.value)}"
    if change.ratio.interval:
        low, high = change.ratio.interval
        level = change.column.boundary.effect_level if change.column.boundary else 0.0
        text += f" ({level:.0%} interval {significant(low)} to {significant(high)})"
    return text


def _cpu(observed: Observed, *, hashes: bool) -> str:
    cpu_us = observed.server_cpu_us_per_op or 0.0
    text = milliseconds(cpu_us)
    stored = stored_in(observed.facts)
    if hashes and stored and stored.rounds:
        text += f" ({significant(cpu_us / stored.rounds)} µs a round)"
    return text


def _read(facts: Facts) -> FactText | None:
    stored = stored_in(facts)
    return None if stored is None else spelled(stored)


STORED_PASSWORD = Explainer(
    columns=(FactColumn(heading="stored password", read=_read, accounted=True),),
    reuses=avoids_hashing,
    of_loads=reuse,
    of_step=stored_change,
)
