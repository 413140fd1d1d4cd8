"""Each build against itself: a comparison whose truth is known, so what it finds is a false alarm.

It costs no run: the runs that a search took of one build are compared with each other as two builds
would be, in pairs and with the sides changing places, so that a slow drift cancels out. Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from dsharness.measure.metric import Metric
from dsharness.model import Sample, Value
from dsresults.compare import student

FEWEST_PAIRS = 3
ALARM = 0.05  # a pair of equal sides differs so often by chance


class SelfCheck(Value):
    """The runs of one build as two sides."""

    candidate: str
    pairs: int
    ratio: float  # of one side to the other; 1 is right
    chance: float  # of sides that differ so much although they are the same

    @property
    def alarm(self) -> bool:
        return self.chance < ALARM


def self_checks(metric: Metric, groups: Mapping[str, Sequence[Sample]]) -> tuple[SelfCheck, ...]:
    """Check every build that has been measured often enough."""
    self_checks_made = (_checked(name, _logs(metric, samples)) for name, samples in groups.items())
    return tuple(check for check in self_checks_made if check is not None)


def _logs(metric: Metric, samples: Iterable[Sample]) -> list[float]:
    """Compare runs that follow each other in one start of the lab: logarithms of their ratios."""
    usable = metric.telling(sample for sample in samples if sample.valid)
    values: dict[tuple[str, str], list[float]] = {}
    for usable_sample in sorted(usable, key=lambda sample: sample.turn):
        if value := metric.slowness(usable_sample):
            values.setdefault((usable_sample.machine.id, usable_sample.session), []).append(
                math.log(value)
            )
    return [
        (-1) ** number * (second - first)
        for logs in values.values()
        for number, (first, second) in enumerate(zip(logs[::2], logs[1::2], strict=False))
    ]


def _checked(candidate: str, logs: Sequence[float]) -> SelfCheck | None:
    """A paired Student test; None where there are too few pairs."""
    if len(logs) < FEWEST_PAIRS:
        return None
    mean, stray = statistics.fmean(logs), statistics.stdev(logs)
    apart = abs(mean) / (stray / math.sqrt(len(logs))) if stray else math.inf if mean else 0.0
    chance = 1 - student.within(apart, len(logs) - 1)
    return SelfCheck(candidate=candidate, pairs=len(logs), ratio=math.exp(mean), chance=chance)


def told(checks: Sequence[SelfCheck]) -> str:
    """What they found, in a sentence; nothing where there are none."""
    if not checks:
        return ""
    alarms = [check.candidate for check in checks if check.alarm]
    builds = "1 build" if len(checks) == 1 else f"{len(checks)} builds"
    names_text = f" ({', '.join(alarms)})" if alarms else ""
    return (
        f"A/A: of {builds} compared with {'itself' if len(checks) == 1 else 'themselves'}, "
        f"{len(alarms)} differ at 5 %{names_text}; {ALARM * len(checks):.2g} would by chance"
    )
