from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsresults.number_text import duration, milliseconds, significant, times, whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.5364, "0.536"),
        (9.996, "10.0"),
        (16.94, "16.9"),
        (140.4, "140"),
        (999.9, "1,000"),
        (3841, "3,840"),
        (-2.5, "-2.50"),
        (math.inf, "unbounded"),
        (math.nan, "unbounded"),
    ],
)
def test_three_digits(value, text):
    assert significant(value) == text


@given(st.floats(min_value=1e-9, max_value=1e12))
def test_three_digits_are_within_half_a_percent(value):
    assert float(significant(value).replace(",", "")) == pytest.approx(value, rel=0.0051)


def test_counts_keep_all_their_digits():
    assert whole(100_001) == "100,001"


def test_units():
    assert milliseconds(536) == "0.536 ms"
    assert times(10) == "10 times"
    assert times(9.871) == "9.87 times"


@pytest.mark.parametrize(
    ("seconds", "spelled"),
    [
        (0, "0 s"), (0.4, "0 s"), (50, "50 s"), (59.6, "1 min"), (80, "1 min 20 s"),
        (663, "11 min 3 s"), (3600, "1 h"), (7523, "2 h 5 min"), (90061, "25 h 1 min"),
    ],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds, spelled):
    assert duration(seconds) == spelled
