"""Which candidates cannot be measured, and why. Core pure logic, no I/O."""

from __future__ import annotations

from dsbisect.search.question import History

FAILED_RUNS = 3  # that many in a row make a candidate unmeasurable


def why_not(history: History, candidate: str) -> str | None:
    """Why a candidate cannot be measured; None when it can.

    A run that was disturbed from outside is repeated, and counts against nobody.
    """
    if candidate in history.unmeasurable:
        return history.unmeasurable[candidate]
    runs = [sample for sample in history.of(candidate) if not sample.disturbed]
    latest = runs[-FAILED_RUNS:]
    if len(latest) == FAILED_RUNS and not any(sample.valid for sample in latest):
        last = latest[-1]
        return f"{FAILED_RUNS} runs in a row failed: {'; '.join(last.invalid)} ({last.log})"
    return None


def all_unmeasurable(history: History) -> dict[str, str]:
    """Every candidate that cannot be measured, and why."""
    asked = dict.fromkeys([*history.unmeasurable, *history.samples])
    reasons = {name: why_not(history, name) for name in asked}
    return {name: why for name, why in reasons.items() if why is not None}
