"""The machine's changing speed is separated from the candidates' levels, and removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsharness.measure.metrics import COST
from dssearch.bayes.evidence import Evidence
from dssearch.bayes.lattice import noise_estimate
from dssearch.bayes.machine_speed import _fit, _Motion, _runs, without_speed
from dssearch.bayes.prior import Belief

NOISE = 0.05


def seen(runs: int, levels: tuple[float, ...], wander: float, seed: int = 3) -> Evidence:
    """Candidates one after the other, again and again, on a machine that swings to and fro."""
    chance = np.random.default_rng(seed)
    owner = np.arange(runs) % len(levels)
    speed = wander * np.sin(2 * np.pi * np.arange(runs) / 60)
    values = np.array(levels)[owner] + speed + NOISE * chance.normal(size=runs)
    return Evidence(
        metric=COST,
        positions=np.arange(len(levels)),
        owner=owner,
        values=values,
        turns=np.arange(runs),
        sessions=np.zeros(runs, dtype=np.int64),
        scales=np.ones(runs),
        burden=np.zeros(runs),
        machines=np.zeros(runs, dtype=np.int64),
        doubts=np.zeros(1),
        below=np.zeros(runs),
        above=np.zeros(runs),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_steady_machine_is_left_alone(seed: int) -> None:
    one = seen(40, (0.0, 0.0, 0.3), 0.0, seed)
    found = without_speed(one, Belief())
    # noise looks like a walk now and then; even so it must not be taken out for one
    assert np.allclose(found.middles, one.middles, atol=2 * NOISE)


def test_most_steady_machines_are_seen_to_be() -> None:
    same = [
        without_speed(one, Belief()) is one
        for one in (seen(40, (0.0, 0.0, 0.3), 0.0, s) for s in range(100))
    ]
    assert sum(same) >= 90


@pytest.mark.parametrize("runs", [3, 6])
def test_few_runs_tell_nothing(runs: int) -> None:
    one = seen(runs, (0.0, 0.0, 0.3), 0.5)
    assert without_speed(one, Belief()) is one


@pytest.mark.parametrize("levels", [(0.0, 0.0, 0.1), (0.0, 0.4, 0.4), (0.2, 0.0, 0.0)])
def test_a_wandering_speed_is_taken_out_and_the_levels_stay(levels: tuple[float, ...]) -> None:
    one = seen(90, levels, 0.4)
    found = without_speed(one, Belief())
    assert found is not one
    rest = found.values - np.array(levels)[found.owner]
    before = one.values - np.array(levels)[one.owner]
    assert np.std(rest) < np.std(before) / 3
    assert np.allclose(np.diff(found.middles), np.diff(levels), atol=NOISE)


def test_what_a_wandering_machine_says_counts_for_less() -> None:
    found = without_speed(seen(90, (0.0, 0.1), 0.4), Belief())
    assert found.scales.min() >= 1
    assert found.scales.max() > 1


def test_a_machine_of_another_speed_changes_nothing() -> None:
    one = seen(90, (0.0, 0.1), 0.4)
    shifted = without_speed(replace(one, values=one.values + 2.0), Belief())
    assert np.allclose(shifted.values - 2.0, without_speed(one, Belief()).values)


def test_one_wild_run_is_not_the_machine_s_speed() -> None:
    one = seen(60, (0.0, 0.0), 0.0)
    wild = one.values.copy()
    wild[31] += 40 * NOISE
    found = without_speed(replace(one, values=wild), Belief())
    others = np.delete(np.arange(60), 31)
    assert np.allclose(found.values[others], wild[others], atol=3 * NOISE)


def spread(one: Evidence, levels: tuple[float, ...]) -> float:
    """Of the levels that are found, around the true ones and what they have in common."""
    return float(np.std(without_speed(one, Belief()).middles - np.array(levels)))


@pytest.mark.parametrize("seed", range(5))
def test_the_two_of_a_turn_have_the_same_speed(seed: int) -> None:
    """However much it differs from turn to turn: by ten times the noise."""
    levels, chance = (0.0, 0.03), np.random.default_rng(seed)
    turns = np.arange(80) // 2
    speed = 0.5 * chance.normal(size=40)[turns]
    values = np.array(levels)[np.arange(80) % 2] + speed + NOISE * chance.normal(size=80)
    pairs = replace(seen(80, levels, 0.0), values=values, turns=turns)
    assert spread(pairs, levels) < 3 * NOISE / np.sqrt(80)
    assert without_speed(pairs, Belief()).speed_scatter == 0


def paired_with_the_first(seed: int, others: np.ndarray, pace: float) -> Evidence:
    """Turns of two, each of the first candidate and another, on a machine that walks."""
    chance = np.random.default_rng(seed)
    turns = np.repeat(np.arange(len(others)), 2)
    owner = np.where(np.arange(len(turns)) % 2, others[turns], 0)
    speed = np.cumsum(pace * chance.normal(size=len(others)))[turns]
    values = speed + NOISE * chance.normal(size=len(turns))
    one = seen(len(turns), (0.0,) * (others.max() + 1), 0.0)
    return replace(one, owner=owner, turns=turns, values=values)


@pytest.mark.whole
@pytest.mark.parametrize("pace", [0.5, 2.0])
def test_levels_of_pairs_are_as_uncertain_as_the_model_says(pace: float) -> None:
    """By the noise that is told from the values, which once made up for their scales."""
    strays, noises = [], []
    for seed in range(60):
        others = np.random.default_rng(seed).permutation(np.repeat([1, 2, 3], 8))
        found = without_speed(paired_with_the_first(seed, others, pace * NOISE), Belief())
        noises.append(noise_estimate(found, Belief()))
        one, other = (found.values[found.owner == at].mean() for at in (1, 2))  # truly the same
        strays.append((one - other) / (noises[-1] * float(np.hypot(*found.errors[1:3]))))
    assert 0.9 < np.median(noises) / NOISE < 1.3
    assert 0.7 < np.std(strays) < 1.1


@pytest.mark.parametrize("seed", range(5))
def test_the_first_runs_of_a_reference_are_no_outliers_where_all_others_came_later(
    seed: int,
) -> None:
    told = paired_with_the_first(seed, np.array([1] * 8 + [*range(2, 42)]), 0.3 * NOISE)
    early = replace(told, values=told.values + 20 * NOISE * (told.turns < 8))
    levels = without_speed(early, Belief()).middles
    assert abs(levels[1] - levels[0]) < 3 * NOISE


@pytest.mark.parametrize("seed", range(5))
def test_what_all_runs_of_a_session_share_is_taken_out(seed: int) -> None:
    levels, chance = (0.0, 0.0, 0.1), np.random.default_rng(seed)
    sessions = np.arange(60) // 12
    one = seen(60, levels, 0.0, seed)
    moved = replace(one, values=one.values + 0.4 * chance.normal(size=5)[sessions])
    told = replace(moved, sessions=sessions)
    assert spread(told, levels) < 2 * NOISE / np.sqrt(20)
    assert without_speed(told, Belief()).speed_scatter > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_a_steady_drift_is_taken_out_although_one_candidate_came_late(seed: int) -> None:
    levels = (0.0, 0.1)
    one = seen(60, levels, 0.0, seed)
    # the second one is measured in the last third only, and in every other run
    owner = np.where((np.arange(60) >= 40) & (np.arange(60) % 2 == 1), 1, 0)
    values = one.values - np.array(levels)[one.owner] + np.array(levels)[owner]
    drifted = replace(one, owner=owner, values=values + 0.01 * np.arange(60))
    found = without_speed(drifted, Belief())
    assert abs(float(np.diff(found.middles)[0]) - 0.1) < 3 * NOISE * np.sqrt(1 / 10 + 1 / 40)
    # on a drift of 0.6 the raw runs of the two lie much further apart
    assert abs(float(np.diff(drifted.middles)[0]) - 0.1) > 0.15


@given(
    pace=st.sampled_from([0.0, 0.1, 30.0]),
    jump=st.sampled_from([0.0, 10.0]),
    drift=st.sampled_from([0.0, 100.0]),
    seed=st.integers(0, 99),
)
def test_least_squares_are_what_they_are_the_slow_way(
    pace: float, jump: float, drift: float, seed: int
) -> None:
    """With the whole covariance of all runs, for two machines, turns of two and sessions."""
    chance, count = np.random.default_rng(seed), 24
    one = seen(count, (0.0, 0.1, 0.2), 0.2, seed)
    turns, sessions = np.arange(count) // 2, np.arange(count) // 8
    told = replace(one, turns=turns, sessions=sessions, machines=chance.integers(0, 2, 12)[turns])
    runs = _runs(told, np.argsort(told.machines, kind="stable"))
    found = _fit(runs, _Motion(pace=pace, jump=jump, drifts=drift > 0))
    steps = (max(pace, 1e-6 if jump else 0.0) + jump * runs.jumps) * np.ones(len(runs.begins))
    reach = np.cumsum(runs.begins)
    lead = (reach[:, None] == reach[None, :]) & np.tri(len(steps), dtype=bool)
    walk = (lead * steps) @ lead.T
    line = np.linspace(-1, 1, len(steps))
    speed = walk + drift * np.outer(line, line)
    whole = np.eye(count) + speed[np.ix_(runs.turns, runs.turns)]
    inverse = np.linalg.inv(whole)
    worth = runs.own.T @ inverse @ runs.own
    levels = np.linalg.solve(worth, runs.own.T @ inverse @ runs.values)
    rest = runs.values - runs.own @ levels
    square = rest @ inverse @ rest
    surprise = np.linalg.slogdet(whole)[1] + np.linalg.slogdet(worth)[1]
    surprise += (count - 3) * np.log(square)
    assert found.levels == pytest.approx(levels, abs=1e-6)
    assert found.worth == pytest.approx(worth, rel=1e-4, abs=1e-6)
    assert found.surprise == pytest.approx(surprise / 2, rel=1e-5, abs=1e-5)
    assert found.noise == pytest.approx(np.sqrt(square / (count - 3)), rel=1e-5)
    assert found.speed == pytest.approx((np.eye(count) - inverse) @ rest, abs=1e-5)
