"""Whether two load tools say the same of a step: what they cost on both sides, and the difference.

A tool has costs of its own, such as a connection for each operation, so the same step is another
factor by each. What an operation costs more on one side than on the other is the same by both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

from pydantic import Field

from dsharness.model import ToolRuns, Value
from dsresults.number_text import times

SURE = 0.99
SMALLEST = 0.2  # of two rows, a step of less may be their compilers'
SAME = (2 / 3, 3 / 2)  # by which one tool's step may be the other's


class ToolStep(Value):
    """By how much operations cost more on the second side, by each tool."""

    tool: str
    own: float = Field(description="cost on the second side / cost on the first, by the lab's own")
    other: float = Field(description="the same by the other tool")
    agree: bool

    @classmethod
    def of(cls, sides: Sequence[ToolRuns]) -> Self | None:
        """None without both sides."""
        if len(sides) != 2:
            return None
        before, after = sides
        own, second_tool = _Step.of(before.own, after.own), _Step.of(before.other, after.other)
        exceeds = own.exceeds(SMALLEST) or second_tool.exceeds(SMALLEST)
        return cls(
            tool=before.tool,
            own=own.factor,
            other=second_tool.factor,
            agree=not (exceeds and _differ(own, second_tool)),
        )

    @property
    def text(self) -> str:
        """A sentence for all outputs."""
        comparison = (
            f"an operation costs {times(self.own)} as much by the lab's own tool, "
            f"{times(self.other)} by UnboundID's {self.tool}, each with the cost of its own way"
        )
        if self.agree:
            return f"the second tool agrees: {comparison}"
        return f"the second tool disagrees, so the answer is not sure: {comparison}"


class _Step(Value):
    """A difference of two means, and how well it is known."""

    base: float
    factor: float
    more: float
    error: float
    freedom: float

    @classmethod
    def of(cls, first: Sequence[float], second: Sequence[float]) -> Self:
        parts = [(_mean(costs), _square(costs), len(costs)) for costs in (first, second)]
        total = sum(square / number for _, square, number in parts)
        weights = [(square / number) ** 2 / (number - 1) for _, square, number in parts]
        return cls(
            base=min(mean for mean, *_ in parts),
            factor=parts[1][0] / parts[0][0],
            more=parts[1][0] - parts[0][0],
            error=math.sqrt(total),
            freedom=total**2 / spread if (spread := sum(weights)) else math.inf,
        )

    def exceeds(self, share: float) -> bool:
        """Whether it is surely a larger part of the cheaper side's cost."""
        return abs(self.more) - _quantile(self.freedom) * self.error > share * self.base


def _differ(own: _Step, second_tool: _Step) -> bool:
    """Whether the other's step surely lies outside what is the same, on one side of it."""
    signs: set[int] = set()
    for factor in SAME:
        apart = second_tool.more - factor * own.more
        error = math.hypot(second_tool.error, factor * own.error)
        if abs(apart) <= _quantile(min(own.freedom, second_tool.freedom)) * error:
            return False
        signs.add(1 if apart > 0 else -1)
    return len(signs) == 1


def _quantile(freedom: float) -> float:
    from scipy.special import stdtrit  # noqa: PLC0415 - slow, and most pages do without

    return float(stdtrit(freedom, 0.5 + SURE / 2))


def _mean(costs: Sequence[float]) -> float:
    return sum(costs) / len(costs)


def _square(costs: Sequence[float]) -> float:
    middle = _mean(costs)
    return sum((cost - middle) ** 2 for cost in costs) / (len(costs) - 1)
