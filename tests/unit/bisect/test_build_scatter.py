"""The scatter of builds: the truth lies in its interval, and a step's error contains it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dsharness.errors import InconclusiveError
from dssearch.build_scatter import (
    MOST_RUNS,
    PILOT_RUNS,
    build_scatter,
    needs_several,
    pooled_step,
    runs_each,
)


def groups(random, builds, runs, scatter, noise, mean=0.0):
    return [
        list(mean + shift + random.normal(0, noise, runs))
        for shift in random.normal(0, scatter, builds)
    ]


@pytest.mark.parametrize(
    ("scatter", "noise", "runs"), [(0.03, 0.03, 10), (0.01, 0.05, 10), (0.0, 0.03, 5)]
)
def test_the_interval_holds_the_truth_as_often_as_it_says(scatter, noise, runs):
    random = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        found = build_scatter(groups(random, 5, runs, scatter, noise))
        low, high = found.interval_pct
        held += low - 0.01 <= 100 * math.expm1(scatter) <= high + 0.01
    assert held / 400 >= 0.87  # stated: 0.90


def test_many_builds_tell_scatter_and_noise_apart():
    found = build_scatter(groups(np.random.default_rng(2), 200, 10, 0.02, 0.05))
    assert found.scatter_pct == pytest.approx(2.0, rel=0.2)
    assert found.noise_pct == pytest.approx(5.1, rel=0.1)
    assert (found.builds, found.runs) == (200, 2000)


def test_numbers_of_runs_may_differ():
    random = np.random.default_rng(3)
    even = groups(random, 100, 12, 0.02, 0.03)
    uneven = [each[: 3 + at % 10] for at, each in enumerate(even)]
    assert build_scatter(uneven).scatter_pct == pytest.approx(2.0, rel=0.25)


def test_equal_builds_have_no_scatter():
    found = build_scatter([[0.0, 0.1], [0.1, 0.0], [0.0, 0.1]])
    assert found.scatter_pct == 0
    assert found.interval_pct[0] == 0


@pytest.mark.parametrize("few", [[], [[1.0, 2.0]], [[1.0, 2.0], [1.0]]])
def test_too_few_are_refused(few):
    with pytest.raises(InconclusiveError, match="builds cannot be compared"):
        build_scatter(few)


@pytest.mark.parametrize(("scatter", "step"), [(0.03, 0.0), (0.03, 0.1), (0.0, 0.05)])
def test_a_pooled_step_holds_the_truth_whatever_builds_do(scatter, step):
    random = np.random.default_rng(4)
    held = 0
    for _ in range(400):
        before = groups(random, 3, 5, scatter, 0.02)
        after = groups(random, 3, 5, scatter, 0.02, mean=step)
        found = pooled_step(before, after, 0.95)
        held += found.allows(step)
    assert held / 400 >= 0.92  # stated: 0.95


def test_a_step_far_above_the_scatter_is_seen():
    random = np.random.default_rng(5)
    seen = 0
    for _ in range(100):
        before = groups(random, 3, 10, 0.02, 0.02)
        after = groups(random, 3, 10, 0.02, 0.02, mean=0.1)
        seen += pooled_step(before, after, 0.95).differs
    assert seen >= 90


def test_more_noise_asks_for_more_runs_within_bounds():
    random = np.random.default_rng(6)
    quiet, loud = (groups(random, 6, 10, 0.02, noise) for noise in (0.005, 0.04))
    assert runs_each(quiet, 0.05) == PILOT_RUNS
    assert PILOT_RUNS < runs_each(loud, 0.05) < MOST_RUNS
    assert runs_each(loud, 0.01) == MOST_RUNS


def test_a_large_step_needs_one_build_of_each_side():
    assert needs_several(math.log(1.05), 0.02)
    assert needs_several(-math.log(1.05), 0.02)
    assert not needs_several(math.log(10), 0.02)
