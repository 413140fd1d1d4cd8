"""The interval of a median is true at every look, whatever the noise is like."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsproducts.dirsrv.validation.median_interval import (
    EVERYTHING,
    change_text,
    median_interval,
)

LEVEL = 0.95
NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=8, max_size=60)
NOISES = {
    "even": lambda rng: rng.gauss(0, 1),
    "strays": lambda rng: rng.gauss(0, 1) * (20 if rng.random() < 0.1 else 1),
    "two modes": lambda rng: rng.choice((-1, 1)) * (1 + 0.1 * rng.random()),
    "skewed": lambda rng: rng.expovariate(1) - math.log(2),
}


@pytest.mark.parametrize("count", range(8))
def test_few_values_say_nothing(count):
    assert median_interval(list(range(count)), LEVEL) == EVERYTHING


@pytest.mark.parametrize("noise", NOISES)
def test_it_is_true_at_every_look(noise):
    rng = random.Random(noise)
    wrong = 0
    for _ in range(300):
        values: list[float] = []
        for _ in range(40):
            values.append(NOISES[noise](rng))
            low, high = median_interval(values, LEVEL)
            if not low <= 0 <= high:
                wrong += 1
                break
    assert wrong / 300 < 2 * (1 - LEVEL)


def test_a_fifth_of_the_values_far_away_does_not_move_it_far():
    rng = random.Random(1)
    values = [rng.gauss(10, 1) for _ in range(40)]
    low, high = median_interval([*values, *[1e9] * 10], LEVEL)
    assert 9 < low < high < 12


@given(NUMBERS, st.floats(-100, 100))
def test_it_moves_with_its_values(values, shift):
    low, high = median_interval(values, LEVEL)
    moved = median_interval([value + shift for value in values], LEVEL)
    assert moved == pytest.approx((low + shift, high + shift), abs=1e-6)


@given(NUMBERS)
def test_more_sure_is_never_narrower(values):
    low, high = median_interval(values, 0.8)
    wide_low, wide_high = median_interval(values, 0.99)
    assert wide_low <= low <= high <= wide_high


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ((1.0, 2.0), "1.00 to 2.00 % slower"),
        ((-2.0, -1.0), "1.00 to 2.00 % faster"),
        ((-1.0, 2.0), "1.00 % faster to 2.00 % slower"),
        ((900.0, 1000.0), "10.0 to 11.0 times as slow"),
        ((-90.0, -80.0), "5.00 to 10.0 times as fast"),
        (EVERYTHING, "not yet known"),
    ],
)
def test_how_a_change_is_told(interval, text):
    assert change_text(interval) == text
