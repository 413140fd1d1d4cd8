"""What the stored password has to do with a change of cost: scheme, rounds, known changes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dsharness import products
from dsharness.systems.ldap.stored_password import StoredPassword
from dsresults.compare.comparison_table import Observed
from dsresults.number_text import milliseconds, significant, spell, times
from dsresults.reasons.cost_steps import CostChange, StepPlace
from dsresults.reasons.password_cache import avoids_hashing
from dsresults.reasons.reason import Confidence, Reason

ALL_OF_IT = 1.25  # a bind costs more than its hash, so the two factors never agree to the digit


def stored_change(place: StepPlace) -> Iterator[Reason]:
    """Whether scheme and rounds explain the change under each workload."""
    stored = place.stored
    if stored is None or stored[0] == stored[1]:
        return
    before, after = stored
    work = _work(before, after)
    text = f"The stored password changes from {spell(before)} to {spell(after)}"
    text += f": {times(work.factor)} the {work.noun}. " if work else ". "
    yield Reason(
        topic=place.name,
        text=text + " ".join(_account(place, change, stored, work) for change in place.changes),
        confidence=Confidence.MEASURED,
        evidence=tuple(_evidence(place, change) for change in place.changes),
    )


def known_changes(place: StepPlace) -> Iterator[Reason]:
    """The known changes of the product that lie just here."""
    if place.product is None:
        return
    before, after = place.facts
    old, new = place.version(place.before), place.version(place.after)
    data, known_of = products.product(place.product), products.known_changes(place.product)
    for known in known_of.between((old, before), (new, after)):
        if set(known.unless_set) & set(place.comparison.options):
            continue
        yield Reason(
            topic=place.name,
            text=f"This coincides with {data.title} issue {known.issue}: {known.what}, first in "
            f"{known.releases}. {old} on {place.before} does not have it, {new} on "
            f"{place.after} has it.",
            confidence=Confidence.LIKELY,
            evidence=tuple(_read_back(place)),
            links=data.links_of(known.issue),
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


def _read_back(place: StepPlace) -> Iterator[str]:
    if place.stored is not None:
        for name, stored in zip((place.before, place.after), place.stored, strict=True):
            yield f"read back on {name}: {spell(stored)}"


def _account(
    place: StepPlace,
    change: CostChange,
    stored: tuple[StoredPassword, StoredPassword],
    work: _Work | None,
) -> str:
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
    if stored[0].scheme == stored[1].scheme:
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
    if hashes and observed.stored and observed.stored.rounds:
        text += f" ({significant(cpu_us / observed.stored.rounds)} µs a round)"
    return text
