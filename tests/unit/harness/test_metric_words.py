"""How each metric says that something is worse or better."""

from __future__ import annotations

import pytest

from dsharness.measure.metrics import METRICS

SAID = {
    "cost": ("5.40 times slower", "faster", "times slower", "slower one"),
    "cpu": ("5.40 times slower", "faster", "times slower", "slower one"),
    "rate": (
        "answers 5.40 times fewer operations a second", "answers more operations a second",
        "times fewer", "that answers fewer operations a second",
    ),
    "latency": ("takes 5.40 times longer", "takes less time", "times longer", "that takes longer"),
    "client-cpu": (
        "costs the load 5.40 times more CPU time", "costs the load less CPU time", "times more",
        "that costs the load more CPU time",
    ),
    "memory": (
        "uses 5.40 times more memory", "uses less memory", "times more", "that uses more memory",
    ),
    "memory-at-rest": (
        "uses 5.40 times more memory at rest", "uses less memory at rest", "times more",
        "that uses more memory at rest",
    ),
    "growth": ("grows 5.40 times more", "grows less", "times more", "that grows more"),
    "faults": (
        "has 5.40 times more page faults", "has fewer page faults", "times more",
        "that has more page faults",
    ),
    "instructions": (
        "executes 5.40 times more instructions", "executes fewer instructions", "times more",
        "that executes more instructions",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_has_words_of_its_own(name: str) -> None:
    words = METRICS[name].words
    said = (
        words.said("slower", "5.40 times"),
        words.said("faster"),
        words.ratio,
        words.one("slower"),
    )
    assert said == SAID[name]
