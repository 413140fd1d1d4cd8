"""Sentences of an answer. Core pure logic, no I/O."""

from __future__ import annotations

from collections.abc import Mapping

from dsbisect.search.question import Question
from dsharness.measure.metrics import Metric
from dsharness.model import DECIDER, NO_DIFFERENCE

FIRST_END_SLOW = "; the first end is the slow one"


def by_metric(decider: Metric) -> str:
    """By which metric, unless it is the usual one."""
    return "" if decider.name == DECIDER else f" by {decider.label}"


def none_text(question: Question, first: str, last: str, *, by: str, visible_pct: float) -> str:
    """The ends agree as far as these runs could show; no culprit is named."""
    return (
        f"{NO_DIFFERENCE} found between {first} and {last} with {question.workload_id}{by}; "
        f"smallest drop this run could have seen: {visible_pct:.0f} %"
    )


def too_few_text(unmeasurable: Mapping[str, str]) -> str:
    """Fewer than two candidates can be measured."""
    reasons = "; ".join(f"{name}: {why}" for name, why in unmeasurable.items())
    return f"fewer than two candidates can be measured: {reasons}"


def with_suspects(summary: str, before: str, after: str, suspects: tuple[str, ...]) -> str:
    """With what could not be judged between the two, where there is anything."""
    if len(suspects) < 2:
        return summary
    skipped = ", ".join(suspects[:-1])
    return f"between {before} and {after}: {summary}, but {skipped} could not be judged"
