"""Which counts of instructions are of the operations alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.measure.instruction_count import agreed, operations_of

COST = 140_000.0


def test_two_that_agree_are_the_answer() -> None:
    assert agreed([COST, COST * 1.005]) == pytest.approx(COST * 1.0025)


@pytest.mark.parametrize("each", [[], [COST], [COST, COST * 2.8], [-COST, -COST]])
def test_otherwise_there_is_none_yet(each: list[float]) -> None:
    assert agreed(each) is None


@given(
    others=st.lists(st.floats(min_value=1.1, max_value=50.0), max_size=4, unique_by=round),
    data=st.data(),
)
def test_the_server_s_own_work_never_counts(others: list[float], data: st.DataObject) -> None:
    each = data.draw(st.permutations([COST, COST * 1.001, *(COST * k for k in others)]))
    apart = all(abs(a - b) > 0.01 * a for a in others for b in others if a != b)
    found = agreed(each)
    assert found is not None
    assert not apart or found == pytest.approx(COST, rel=0.001)


@pytest.mark.parametrize(("operation_s", "count"), [(-0.01, 1000), (0.08, 50), (4.0, 2), (60.0, 2)])
def test_a_run_is_as_long_as_time_allows(operation_s: float, count: int) -> None:
    assert operations_of(operation_s) == count
