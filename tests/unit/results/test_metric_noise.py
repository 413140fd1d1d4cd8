"""What the noise of a row against itself hides: the stated change is really found that often."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import stdtrit
from worlds import sample_of

from dsbisect.metric_noise import CONFIDENCE, PAIRS, POWER, noise_of, smallest_change

TRIES = 1500


def found(true_log: float, sd: float, draw: random.Random) -> bool:
    """Whether a paired Student test sees it in ten pairs."""
    logs = [draw.gauss(true_log, sd) for _ in range(PAIRS)]
    mean = sum(logs) / PAIRS
    stray = math.sqrt(sum((each - mean) ** 2 for each in logs) / (PAIRS - 1))
    return abs(mean) > float(stdtrit(PAIRS - 1, (1 + CONFIDENCE) / 2)) * stray / math.sqrt(PAIRS)


@settings(max_examples=settings.default.max_examples // 4)
@given(sd=st.floats(0.005, 0.5), seed=st.integers(0, 10**6))
def test_the_stated_change_is_found_in_four_of_five_tries(sd: float, seed: int) -> None:
    draw, change = random.Random(seed), math.log(smallest_change(sd))
    share = sum(found(change, sd, draw) for _ in range(TRIES)) / TRIES
    assert share == pytest.approx(POWER, abs=0.05)
    false = sum(found(0.0, sd, draw) for _ in range(TRIES)) / TRIES
    assert false == pytest.approx(1 - CONFIDENCE, abs=0.03)


@given(sd=st.floats(0.001, 1.0))
def test_more_pairs_show_less_and_more_noise_hides_more(sd: float) -> None:
    assert smallest_change(sd, 20) < smallest_change(sd) < smallest_change(2 * sd)
    assert smallest_change(0.0) == 1.0


def test_what_both_sides_of_a_pair_share_hides_nothing() -> None:
    """The machine's speed moves both runs of a turn: their ratio stays."""
    speeds = (1.0, 1.5, 0.8, 1.2)
    first = [sample_of("a", speed, turn) for turn, speed in enumerate(speeds)]
    second = [sample_of("b", speed, turn) for turn, speed in enumerate(speeds)]
    cost = next(each for each in noise_of(first, second) if each.metric == "cost")
    assert (cost.runs, cost.pairs) == (8, 4)
    assert cost.cv_pct is not None
    assert cost.cv_pct > 10
    assert cost.smallest_pct == pytest.approx(0.0, abs=1e-9)


def test_an_invalid_run_does_not_count() -> None:
    first = [sample_of("a", 1.0, turn) for turn in range(3)]
    second = [sample_of("b", 1.0, turn) for turn in range(3)]
    second[1] = second[1].model_copy(update={"invalid": ("the load did not finish",)})
    cost = next(each for each in noise_of(first, second) if each.metric == "cost")
    assert (cost.runs, cost.pairs) == (5, 2)
