"""What the stored password has to do with a change of cost: scheme, rounds, known changes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dsharness.model import StoredPassword
from dsresults.figures import milliseconds, significant, spell, times
from dsresults.known_changes import changes_between
from dsresults.observing import Observed
from dsresults.reasons.finding import Confidence, Finding
from dsresults.reasons.reuse import avoids_hashing
from dsresults.reasons.steps import Change

ALL_OF_IT = 1.25  # a bind costs more than its hash, so the two factors never agree to the digit


def stored_change(change: Change) -> Iterator[Finding]:
    """Whether scheme and rounds explain the change, and which known change this is."""
    before, after = change.before.stored, change.after.stored
    if before is None or after is None or before == after:
        return
    yield Finding(
        topic=change.place,
        text=f"With {change.column.workload_id}: the stored password changes from {spell(before)} "
        f"to {spell(after)}. {_account(change, before, after)}",
        confidence=Confidence.MEASURED,
        evidence=(_evidence(change.before), _evidence(change.after), _ratio(change)),
    )


def known_changes(change: Change) -> Iterator[Finding]:
    """The known changes of 389-ds that lie just here."""
    before, after = change.before.stored, change.after.stored
    if before is None or after is None:
        return
    old, new = change.version(change.before), change.version(change.after)
    for known in changes_between((old, before), (new, after)):
        if known.only_default_scheme and not change.comparison.default_scheme:
            continue
        yield Finding(
            topic=change.place,
            text=f"It coincides with 389-ds issue {known.issue}: {known.what}, from {known.tags} "
            f"on. {old} has not got it, {new} has.",
            confidence=Confidence.LIKELY,
            evidence=(
                f"read back on {change.before.candidate}: {spell(before)}",
                f"read back on {change.after.candidate}: {spell(after)}",
            ),
            links=(known.url,),
        )


def _account(change: Change, before: StoredPassword, after: StoredPassword) -> str:
    free = [
        observed.candidate
        for observed in (change.before, change.after)
        if avoids_hashing(change.comparison, change.column, observed.candidate)
    ]
    cost = f"{times(change.ratio.value)} the CPU time"
    if free:
        return (
            f"{cost} per operation, but {' and '.join(free)} hardly hashes under this load (see "
            "reuse below), so the rounds do not account for it."
        )
    if not before.rounds or not after.rounds:
        return f"{cost} per operation; the rounds of one of the two are not known."
    rounds = after.rounds / before.rounds
    begin = f"{times(rounds)} the rounds, {cost}: "
    if before.scheme == after.scheme:
        return begin + _same_scheme(change.ratio.value, rounds)
    per_round = change.ratio.value / rounds
    word = "cheaper" if per_round < 1 else "dearer"
    return f"{begin}each round is {times(max(per_round, 1 / per_round))} {word}."


def _same_scheme(cost: float, rounds: float) -> str:
    left = cost / rounds
    if 1 / ALL_OF_IT <= left <= ALL_OF_IT:
        return "the rounds explain it all."
    if math.log(cost) * math.log(rounds) <= 0:
        return "the rounds do not explain it."
    more = "more" if abs(math.log(cost)) > abs(math.log(rounds)) else "less"
    return f"{times(max(left, 1 / left))} {more} than the rounds explain."


def _evidence(observed: Observed) -> str:
    text = f"{observed.candidate}: {spell(observed.stored)}" if observed.stored else ""
    cpu_us = observed.server_cpu_us_per_op
    if cpu_us is None:
        return text
    text += f", {milliseconds(cpu_us)} of server CPU per operation"
    if observed.stored and observed.stored.rounds:
        text += f", {significant(1000 * cpu_us / observed.stored.rounds)} ns for each stored round"
    return text


def _ratio(change: Change) -> str:
    text = f"calibrated cost, after over before: {times(change.ratio.value)}"
    if change.ratio.interval:
        low, high = change.ratio.interval
        text += f" (99 % interval {significant(low)} to {significant(high)})"
    return text
