"""A machine whose runs vary much more than another one's is told; levels are no noise."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from worlds import sample_of

from dsharness.measure.metrics import find_metric
from dsharness.model import DECIDER, LdcltWorkload, Sample, Turn, TurnState
from dsmany.run_noise import RunNoise, noisier, run_noise

METRIC = find_metric(DECIDER)
NAMES = {"a": "lab-1", "b": "lab-2", "c": "lab-3"}
Of = Callable[[str, int, str], float]  # by machine, turn and candidate


def measured(
    noise: dict[str, float], turns: int, seed: int = 0, factor: Of = lambda *_: 1.0
) -> tuple[list[Turn], list[Sample]]:
    """Turns of two candidates, on one machine after the other."""
    chance, found, samples = random.Random(seed), list[Turn](), list[Sample]()
    for number in range(turns):
        machine = list(noise)[number % len(noise)]
        pair = chance.sample("pqrs", 2)
        turn = Turn(
            campaign_id="c",
            number=number,
            candidates=tuple(pair),
            machine=machine,
            workload=LdcltWorkload(id="w", title="binds"),
        )
        found.append(turn.model_copy(update={"state": TurnState.DONE}))
        for name in pair:
            value = factor(machine, number, name) * chance.lognormvariate(0, noise[machine])
            samples.append(sample_of(name, value, number))
    return found, samples


def told(noise: dict[str, float], turns: int, seed: int = 0) -> dict[str, str]:
    return noisier(run_noise(*measured(noise, turns, seed), METRIC), NAMES)


def test_a_machine_that_varies_five_times_as_much_is_told_with_both_figures() -> None:
    for seed in range(20):
        assert set(told({"a": 0.03, "b": 0.15}, 60, seed)) == {"b"}
    said = told({"a": 0.03, "b": 0.15, "c": 0.03}, 90)
    assert set(said) == {"b"}
    assert "lab-2" not in said["b"]  # whoever tells it names it
    assert re.search(r"vary by (1|2)\d %, those of lab-[13] by [234](\.\d)? %$", said["b"])


def test_counts_that_happen_to_agree_make_no_other_machine_noisy() -> None:
    """On one machine they did, on the other one in ten is 0.8 % more."""
    alike = {"a": 0.0, "b": 0.0}
    for seed in range(20):
        strays = iter(random.Random(seed).choices((1.0, 1.008), (0.9, 0.1), k=32))
        turns, samples = measured(alike, 16, seed, lambda *_, each=strays: next(each))
        assert not noisier(run_noise(turns, samples, METRIC), NAMES)
    assert set(told({"a": 0.0, "b": 0.2}, 40)) == {"b"}


def test_machines_alike_and_few_runs_say_nothing() -> None:
    """At any moment of 200 searches."""
    for seed in range(200):
        turns, samples = measured({"a": 0.03, "b": 0.03}, 60, seed)
        for end in (8, 16, 30, 60):
            assert noisier(run_noise(turns[:end], samples, METRIC), NAMES) == {}
    assert told({"a": 0.03, "b": 0.3}, 8) == {}
    assert told({"a": 0.03}, 60) == {}
    assert noisier({}, NAMES) == {}


def test_twice_the_noise_is_no_reason() -> None:
    assert told({"a": 0.03, "b": 0.06}, 200) == {}


@given(
    speeds=st.lists(st.floats(0.2, 5.0), min_size=24, max_size=24),
    levels=st.lists(st.floats(0.2, 5.0), min_size=8, max_size=8),
)
def test_speeds_of_turns_and_levels_of_candidates_are_no_noise(
    speeds: list[float], levels: list[float]
) -> None:
    """Each machine has levels of its own: what it is slower at is no noise either."""

    def factor(machine: str, turn: int, name: str) -> float:
        return speeds[turn] * levels[4 * (machine == "b") + "pqrs".index(name)]

    noise = {"a": 0.03, "b": 0.05}
    plain = run_noise(*measured(noise, 24), METRIC)
    changed = run_noise(*measured(noise, 24, factor=factor), METRIC)
    for machine in noise:
        assert changed[machine].freedom == plain[machine].freedom > 0
        assert changed[machine].deviation == pytest.approx(plain[machine].deviation, rel=1e-6)


def test_only_turns_that_ended_and_runs_that_are_usable_count() -> None:
    turns, samples = measured({"a": 0.03}, 24)
    lost = [turn.model_copy(update={"state": TurnState.GIVEN_UP}) for turn in turns]
    assert run_noise(lost, samples, METRIC) == {}
    bad = [each.model_copy(update={"invalid": ("the server died",)}) for each in samples]
    assert run_noise(turns, bad, METRIC) == {}
    assert run_noise(turns[:1], samples, METRIC) == {"a": RunNoise()}
