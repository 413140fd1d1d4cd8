"""Student's distribution: as SciPy has it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from dsresults.compare import student

FREEDOM = st.integers(1, 3000)


@given(freedom=FREEDOM, share=st.floats(0.01, 0.9999))
def test_what_a_share_lies_within(freedom: int, share: float) -> None:
    expected = float(stdtrit(freedom, (1 + share) / 2))
    assert student.reach(share, freedom) == pytest.approx(expected, rel=1e-9)


@given(freedom=FREEDOM, value=st.floats(-50, 50))
def test_the_chance_to_lie_as_near(freedom: int, value: float) -> None:
    expected = 1 - 2 * float(stdtr(freedom, -abs(value)))
    assert student.within(value, freedom) == pytest.approx(expected, abs=1e-12)


@given(freedom=FREEDOM)
def test_all_lie_somewhere(freedom: int) -> None:
    assert student.within(math.inf, freedom) == pytest.approx(1.0, abs=1e-12)
    assert student.within(0.0, freedom) == 0.0
