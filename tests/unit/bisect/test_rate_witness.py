"""The rate is asked what it can tell, and has no veto."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shipped import MATRIX
from worlds import World, with_metric

from dsharness.matrix import find_workload
from dsharness.measure.metrics import RATE
from dsharness.model import Sample
from dssearch.bayes.answer_figures import RateDifference, contradicts, expected, word
from dssearch.bayes.bayes_search import Bayes

STEP = 8
NAMES = tuple(f"c{number}" for number in range(16))


class RateWorld(World):
    """The rate has a step and a noise of its own."""

    rate_step = 1.10
    rate_noise = 0.13

    def sample(self, row: str, turn: int) -> Sample:
        taken = super().sample(row, turn)
        chance = random.Random(f"rate/{self.seed}/{row}/{turn}")
        slower = self.rate_step if NAMES.index(row) >= STEP else 1.0
        rate = 1000 / slower * chance.lognormvariate(0, self.rate_noise)
        return with_metric(taken, RATE, rate)


def boundary_of(seed: int, *, step: float, rate_step: float, rate_noise: float):
    costs = {name: step if at >= STEP else 1.0 for at, name in enumerate(NAMES)}
    world = RateWorld(costs, noise=0.02, seed=seed)
    world.rate_step, world.rate_noise = rate_step, rate_noise
    return world.search(Bayes(survey_up_to=0))


@pytest.mark.few(1)
@pytest.mark.parametrize(("seed", "rate_noise"), [(0, 0.13), (1, 0.26), (2, 0.26)])
def test_a_rate_that_knows_nothing_does_not_veto(seed, rate_noise):
    found = boundary_of(seed, step=1.10, rate_step=1.10, rate_noise=rate_noise)
    assert found.after == f"c{STEP}"
    assert found.found
    assert found.witness in {"cannot tell", "agrees"}


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(5))
def test_a_rate_that_clearly_shows_no_step_contradicts(seed):
    found = boundary_of(seed, step=3.0, rate_step=1.0, rate_noise=0.05)
    assert found.witness == "contradicts"
    assert not found.found
    assert "the rate contradicts" in found.summary


def test_a_rate_that_shows_the_step_agrees():
    found = boundary_of(1, step=3.0, rate_step=3.0, rate_noise=0.05)
    assert (found.found, found.witness) == (True, "agrees")


class WaitingWorld(RateWorld):
    """Of an operation's time the server computes for a tenth; the rest does not change."""

    rest_us = 9_000.0  # where computing takes 1,000

    def sample(self, row: str, turn: int) -> Sample:
        taken = super().sample(row, turn)
        each_us = taken.value("cpu")
        assert each_us is not None
        waits = find_workload(MATRIX, "bind-one")
        rate = waits.at_once * 1e6 / (each_us + self.rest_us)
        chance = random.Random(f"waits/{self.seed}/{row}/{turn}")
        rate *= chance.lognormvariate(0, self.rate_noise)
        return with_metric(taken, RATE, rate).model_copy(update={"workload": waits})


@pytest.mark.few(2)
@pytest.mark.parametrize(("seed", "step"), [(0, 3.0), (1, 3.0), (2, 1 / 3)])
def test_a_rate_of_operations_that_wait_follows_as_far_as_they_compute(seed: int, step: float):
    """Three times the CPU time of a tenth makes an operation a fifth longer, not three times."""
    costs = {name: step if at >= STEP else 1.0 for at, name in enumerate(NAMES)}
    world = WaitingWorld(costs, noise=0.02, seed=seed)
    world.rate_noise = 0.03
    found = world.search(Bayes(survey_up_to=0))
    assert (found.after, found.found) == (f"c{STEP}", True)


sizes = st.floats(-4, 4)
shares = st.floats(0.001, 1)


@given(sizes, st.floats(0, 1), shares)
def test_less_is_expected_of_what_computes_less(size: float, error: float, share: float):
    whole = RateDifference(size=size, error=error)
    part = expected(whole, share)
    assert abs(part.size) <= abs(size) + 1e-9
    assert part.size * size >= 0
    assert part.error <= error + 1e-9
    assert expected(whole, 1.0).size == pytest.approx(size)
    assert expected(RateDifference(size=-size, error=error), share).size == -part.size


@given(sizes, shares, st.floats(0.001, 0.3))
def test_a_rate_that_waits_for_everything_else_as_before_never_contradicts(
    size: float, share: float, error: float
):
    decider = RateDifference(size=size, error=0.0)
    seen = expected(decider, share)
    witness = RateDifference(size=seen.size, error=error)
    assert not contradicts(expected(decider, share), witness)


@pytest.mark.whole
def test_a_rate_alone_gets_a_word():
    found = boundary_of(1, step=1.0, rate_step=3.0, rate_noise=0.02)
    assert found.direction == "none"
    assert re.search(r"by the rate c15 is (2\.9|3\.0)", found.summary)


SCHEDULED = find_workload(MATRIX, "search-schedule")


@pytest.mark.parametrize("mark", [{"load_bound": True}, {"workload": SCHEDULED}])
def test_a_rate_that_is_not_the_servers_is_no_witness(mark):
    """The load had no CPU left, or began its operations by a schedule."""
    costs = {name: 3.0 if at >= STEP else 1.0 for at, name in enumerate(NAMES)}

    class Bound(RateWorld):
        def sample(self, row, turn):
            return super().sample(row, turn).model_copy(update=mark)

    world = Bound(costs, noise=0.02)
    world.rate_step, world.rate_noise = 1.0, 0.01
    found = world.search(Bayes())
    assert (found.after, found.witness) == (f"c{STEP}", None)


SIZES = st.floats(-5, 5)
ERRORS = st.floats(0.001, 5)


@given(SIZES, ERRORS, SIZES, ERRORS)
def test_more_noise_never_makes_a_witness_contradict(size, error, other, noise):
    decider = RateDifference(size=size, error=error)
    quiet, noisy = (RateDifference(size=other, error=noise * times) for times in (1, 2))
    assert contradicts(decider, quiet) or not contradicts(decider, noisy)


@given(SIZES, ERRORS, ERRORS, st.floats(0.5, 3))
def test_a_witness_that_sees_half_of_it_does_not_contradict(size, error, noise, part):
    decider = RateDifference(size=size, error=error)
    assert not contradicts(decider, RateDifference(size=part * size, error=noise))


def test_without_a_witness_there_is_no_word():
    assert word(RateDifference(size=1, error=0.1), None) == "cannot tell"
