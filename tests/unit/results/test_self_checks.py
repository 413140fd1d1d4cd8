"""Builds against themselves: how often equal runs differ, and what a drift does."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import sample_of

from dsharness.measure.metrics import COST
from dsresults.compare.self_checks import FEWEST_PAIRS, SelfCheck, self_checks, told


def taken(costs: list[float], **changes: object):
    return [sample_of("a", cost, turn, **changes) for turn, cost in enumerate(costs)]


@pytest.mark.whole
def test_equal_runs_alarm_as_often_as_is_said() -> None:
    chance = random.Random(7)
    found = [
        self_checks(COST, {"a": taken([math.exp(chance.gauss(0, 0.1)) for _ in range(16)])})
        for _ in range(600)
    ]
    alarms = sum(check.alarm for (check,) in found)
    assert 15 <= alarms <= 47  # 30 are expected; more or fewer come once in 1,000


def test_a_drift_that_is_as_large_as_the_noise_is_no_alarm() -> None:
    chance = random.Random(8)
    costs = [math.exp(0.02 * run + chance.gauss(0, 0.05)) for run in range(40)]
    (check,) = self_checks(COST, {"a": taken(costs)})
    assert not check.alarm


def test_what_differs_from_run_to_run_by_a_rule_is_an_alarm() -> None:
    chance = random.Random(9)
    costs = [(1, 2, 2, 1)[run % 4] * math.exp(chance.gauss(0, 0.05)) for run in range(16)]
    (check,) = self_checks(COST, {"a": taken(costs)})
    assert check.alarm
    assert check.ratio == pytest.approx(2, rel=0.1)
    assert "1 differ at 5 % (a)" in told([check])


@given(st.lists(st.floats(0.1, 10), max_size=2 * FEWEST_PAIRS - 1))
def test_few_runs_are_not_checked(costs: list[float]) -> None:
    assert self_checks(COST, {"a": taken(costs)}) == ()


def test_runs_that_may_not_be_used_are_left_out() -> None:
    assert self_checks(COST, {"a": taken([1.0] * 8, invalid=("it died",))}) == ()


def test_runs_that_are_all_the_same_do_not_differ() -> None:
    (check,) = self_checks(COST, {"a": taken([1.0] * 8)})
    assert (check.chance, check.ratio) == (1, 1)


def test_nothing_is_told_of_nothing() -> None:
    assert told([]) == ""
    quiet = SelfCheck(candidate="a", pairs=4, ratio=1.01, chance=0.4)
    assert told([quiet] * 2) == (
        "A/A: of 2 builds compared with themselves, 0 differ at 5 %; 0.1 would by chance"
    )
