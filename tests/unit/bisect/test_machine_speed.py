"""The machine's changing speed is separated from the candidates' levels, and removed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dsbisect.search.bayes.evidence import Evidence
from dsbisect.search.bayes.machine_speed import without_speed
from dsharness.measure.metrics import COST

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
        scales=np.ones(runs),
        burden=np.zeros(runs),
        machines=np.zeros(runs, dtype=np.int64),
        doubts=np.zeros(1),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_steady_machine_is_left_alone(seed: int) -> None:
    one = seen(40, (0.0, 0.0, 0.3), 0.0, seed)
    found = without_speed(one)
    # noise looks like a walk now and then; even so it must not be taken out for one
    assert np.allclose(found.middles, one.middles, atol=2 * NOISE)


def test_most_steady_machines_are_seen_to_be() -> None:
    same = [
        without_speed(one) is one for one in (seen(40, (0.0, 0.0, 0.3), 0.0, s) for s in range(100))
    ]
    assert sum(same) >= 90


@pytest.mark.parametrize("runs", [3, 6])
def test_few_runs_tell_nothing(runs: int) -> None:
    one = seen(runs, (0.0, 0.0, 0.3), 0.5)
    assert without_speed(one) is one


@pytest.mark.parametrize("levels", [(0.0, 0.0, 0.1), (0.0, 0.4, 0.4), (0.2, 0.0, 0.0)])
def test_a_wandering_speed_is_taken_out_and_the_levels_stay(levels: tuple[float, ...]) -> None:
    one = seen(90, levels, 0.4)
    found = without_speed(one)
    assert found is not one
    rest = found.values - np.array(levels)[found.owner]
    before = one.values - np.array(levels)[one.owner]
    assert np.std(rest) < np.std(before) / 3
    assert np.allclose(np.diff(found.middles), np.diff(levels), atol=NOISE)


def test_what_a_wandering_machine_says_counts_for_less() -> None:
    found = without_speed(seen(90, (0.0, 0.1), 0.4))
    assert found.scales.min() >= 1
    assert found.scales.max() > 1


def test_a_machine_of_another_speed_changes_nothing() -> None:
    one = seen(90, (0.0, 0.1), 0.4)
    shifted = without_speed(replace(one, values=one.values + 2.0))
    assert np.allclose(shifted.values - 2.0, without_speed(one).values)


def test_one_wild_run_is_not_the_machine_s_speed() -> None:
    one = seen(60, (0.0, 0.0), 0.0)
    wild = one.values.copy()
    wild[31] += 40 * NOISE
    found = without_speed(replace(one, values=wild))
    others = np.delete(np.arange(60), 31)
    assert np.allclose(found.values[others], wild[others], atol=3 * NOISE)
