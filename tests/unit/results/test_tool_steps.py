"""Two load tools and one step: what they must agree on, and what is a cost of their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.model import ToolRuns
from dsresults.tool_steps import ToolStep

factors = st.floats(0.2, 5)
costs = st.floats(0.1, 1000)
SPREAD = (0.99, 1.0, 1.01, 1.0)


def step(own: tuple[float, float], other: tuple[float, float], spread=SPREAD) -> ToolStep:
    sides = [
        ToolRuns(
            candidate_id=name, workload_id="load", tool="searchrate",
            own=tuple(mine * each for each in spread),
            other=tuple(theirs * each for each in reversed(spread)),
        )
        for name, mine, theirs in zip(("old", "new"), own, other, strict=True)
    ]  # fmt: skip
    found = ToolStep.of(sides)
    assert found is not None
    return found


@given(costs, factors, st.floats(0, 10))
def test_a_tool_may_cost_more_on_both_sides(base: float, factor: float, more: float) -> None:
    """What its own way costs is no part of the step."""
    mine, own_way = (base, base * factor), base * more
    found = step(mine, (mine[0] + own_way, mine[1] + own_way))
    assert found.agree
    assert found.own == pytest.approx(factor)
    assert found.other == pytest.approx((base * factor + own_way) / (base + own_way))


@given(costs, st.floats(1.5, 20), st.booleans())
def test_a_step_of_one_tool_alone_is_not_sure(base: float, factor: float, mine: bool) -> None:
    some, none = (base, base * factor), (base, base)
    found = step(*((some, none) if mine else (none, some)))
    assert not found.agree
    assert "the second tool disagrees, so the answer is not sure" in found.text


@given(costs, st.floats(1.5, 5))
def test_opposite_steps_are_not_the_same(base: float, factor: float) -> None:
    assert not step((base, base * factor), (base * factor, base)).agree


@given(costs, st.floats(0.93, 1.07))
def test_what_may_be_the_compilers_is_no_disagreement(base: float, factor: float) -> None:
    assert step((base, base), (base, base * factor)).agree


@given(costs, st.floats(0.5, 2))
def test_noise_is_no_disagreement(base: float, factor: float) -> None:
    """Tools that vary by half of what they measure contradict nobody."""
    assert step((base, base), (base, base * factor), spread=(0.5, 1.0, 1.5, 1.0)).agree


@given(costs, factors, factors)
def test_sides_in_the_other_order_say_the_same(base: float, own: float, other: float) -> None:
    there = step((base, base * own), (base, base * other))
    back = step((base * own, base), (base * other, base))
    assert there.agree == back.agree


def test_one_side_says_nothing() -> None:
    runs = ToolRuns(candidate_id="a", workload_id="w", tool="modrate", own=(1, 1), other=(1, 1))
    assert ToolStep.of([]) is None
    assert ToolStep.of([runs]) is None
