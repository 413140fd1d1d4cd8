"""The search that understands noise, in worlds whose truth is known."""

from __future__ import annotations

import pytest
from worlds import World

from dsbisect.statistical import Bayes

NAMES = [f"c{number:02}" for number in range(24)]


def world(step, noise=0.1, effect=3.0, seed=0, broken=()):
    costs = {
        name: effect if step is not None and number >= step else 1.0
        for number, name in enumerate(NAMES)
    }
    return World(costs, noise=noise, seed=seed, broken=frozenset(NAMES[each] for each in broken))


@pytest.mark.parametrize("step", [1, 2, 11, 22, 23])
@pytest.mark.parametrize("noise", [0.02, 0.15])
def test_the_step_is_found(step, noise):
    boundary = world(step, noise).search(Bayes())
    assert boundary.found
    assert NAMES[step] in boundary.suspects
    assert boundary.direction == "slower"


def test_an_improvement_is_found_too():
    boundary = world(9, effect=0.3).search(Bayes())
    assert (boundary.direction, boundary.after) == ("faster", NAMES[9])


def test_no_culprit_is_named_where_there_is_none():
    boundary = world(None).search(Bayes())
    assert not boundary.found
    assert boundary.direction == "none"


def test_without_noise_it_builds_no_more_than_halving():
    found = world(13, noise=1e-6)
    found.search(Bayes())
    assert len({sample.row_id for sample in found.taken}) <= 2 + 5


def test_what_cannot_be_measured_stays_among_the_suspects():
    boundary = world(9, broken=(8, 9)).search(Bayes())
    assert boundary.found
    assert {NAMES[8], NAMES[9], NAMES[10]} <= {*boundary.suspects}


def test_the_same_samples_give_the_same_answer():
    assert world(5, seed=3).search(Bayes()) == world(5, seed=3).search(Bayes())
