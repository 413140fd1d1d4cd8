"""How many operations a run has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.loads.load_driver import run_size
from dsharness.model import LdcltWorkload

WORKLOAD = LdcltWorkload(id="w", title="w", threads=4, duration_s=2, operations=200, most_s=4)


@pytest.mark.parametrize(
    ("rate", "operations"),
    [
        (4000, 8000),  # two seconds
        (100, 200),  # two seconds, and as many as a run should have
        (60, 200),  # fewer in two seconds: it takes a little longer
        (26, 104),  # but never longer than four seconds
        (0.3, 4),  # one of each thread at least
        (None, 4),  # nothing is known yet
    ],
)
def test_as_many_as_say_something_in_bounded_time(rate: float | None, operations: int) -> None:
    assert run_size(WORKLOAD, rate).per_thread * WORKLOAD.threads == operations


@given(st.floats(0.01, 1e6), st.integers(1, 64), st.sampled_from([0.5, 1.0]))
def test_a_run_has_time_to_end_on_a_machine_that_became_slow(
    rate: float, threads: int, share: float
) -> None:
    workload = WORKLOAD.model_copy(update={"threads": threads})
    size = run_size(workload, rate, share)
    assert size.per_thread >= 1
    assert size.limit_s >= 4 * size.per_thread * threads / rate


def test_two_halves_are_a_whole() -> None:
    half, whole = run_size(WORKLOAD, 1000, 0.5), run_size(WORKLOAD, 1000)
    assert 2 * half.per_thread == whole.per_thread
