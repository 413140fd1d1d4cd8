"""How long operations took: what a histogram keeps, and what it refuses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dsharness.errors import InconclusiveError
from dsharness.model import Latencies
from dsharness.model.measured import LONGEST_US, MOST_TEXT

COUNTS = st.dictionaries(st.integers(1, LONGEST_US), st.integers(1, 10**6), min_size=1, max_size=40)


@given(COUNTS, COUNTS)
def test_merging_is_as_if_all_had_been_in_one(
    first: dict[int, int], second: dict[int, int]
) -> None:
    whole = {
        time: first.get(time, 0) + second.get(time, 0) for time in first.keys() | second.keys()
    }
    merged = Latencies.merged([Latencies.of(first), Latencies.of(second)])
    assert merged == Latencies.of(whole)
    assert merged.count == sum(whole.values())


@given(COUNTS)
def test_counts_come_back_in_steps_of_a_thousandth(counts: dict[int, int]) -> None:
    found = Latencies.of(counts).counts
    assert [*found] == sorted(found)
    assert sum(found.values()) == sum(counts.values())
    assert all(any(abs(us - time) <= max(1, us / 1000) for us in found) for time in counts)


@given(COUNTS, st.floats(1.0, 100.0))
def test_a_percentile_is_right_to_a_thousandth(counts: dict[int, int], percent: float) -> None:
    wanted, passed = max(1, math.floor(percent / 100 * sum(counts.values()) + 0.5)), 0
    for time in sorted(counts):
        passed += counts[time]
        if passed >= wanted:
            break
    assert Latencies.of(counts).at_us(percent) == pytest.approx(time, rel=1e-3, abs=1.0)


def test_what_is_below_or_above_its_range_counts_at_its_end() -> None:
    took = Latencies.of({0.01: 1, 2.0 * LONGEST_US: 1})
    assert took.count == 2
    assert took.at_us(100) == pytest.approx(LONGEST_US, rel=1e-3)


@pytest.mark.parametrize("text", ["", "abc", "HISTFAAA", Latencies.of({5: 1}).encoded[:-8]])
def test_what_is_no_histogram_is_told_when_it_is_asked(text: str) -> None:
    with pytest.raises(InconclusiveError, match="cannot be read"):
        _ = Latencies(encoded=text).mean_us


def test_a_text_too_long_for_any_histogram_is_refused() -> None:
    fullest = Latencies.of({1.0007**at: at for at in range(1, 31_000)})
    assert len(fullest.encoded) < MOST_TEXT
    with pytest.raises(ValidationError, match="at most"):
        Latencies(encoded="A" * (MOST_TEXT + 1))
