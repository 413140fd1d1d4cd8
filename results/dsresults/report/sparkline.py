"""The one-second rates of a sample as a small curve. Pure geometry."""

from __future__ import annotations

from dsharness.model import Sample, Value
from dsresults.number_text import significant

SPARK_WIDTH, SPARK_HEIGHT = 90, 22


class Spark(Value):
    """The one-second rates of a sample."""

    points: str
    description: str


def spark(sample: Sample) -> Spark | None:
    """A line from the first second to the last, from zero up."""
    rates = sample.per_second
    if len(rates) < 2 or max(rates) <= 0:
        return None
    step = SPARK_WIDTH / (len(rates) - 1)
    points = [
        f"{i * step:.1f},{SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * rate / max(rates):.1f}"
        for i, rate in enumerate(rates)
    ]
    return Spark(
        points=" ".join(points),
        description="operations each second: " + ", ".join(significant(rate) for rate in rates),
    )
