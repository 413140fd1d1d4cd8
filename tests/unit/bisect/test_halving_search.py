from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, with_metric

from dsbisect.search.plain.halving_search import Halving
from dsbisect.search.plain.verdicts import Policy
from dsharness.measure.metrics import RATE
from dsharness.model import Outcome


def line(*costs: float) -> dict[str, float]:
    return {f"r{number}": cost for number, cost in enumerate(costs)}


@pytest.mark.parametrize(
    ("costs", "before", "after"),
    [
        ((1, 20), "r0", "r1"),
        ((1, 20, 20), "r0", "r1"),
        ((1, 1, 20), "r1", "r2"),
        ((1, 1, 1, 1, 1, 1.3, 1.3), "r4", "r5"),
        ((8, 3, 24, 24), "r1", "r2"),  # faster in between, as Debian's rows with many users
        ((1, 13.7, 137, 137), "r0", "r1"),  # two steps: the first large one is the answer
    ],
)
def test_finds_the_step(costs, before, after):
    boundary = World(line(*costs)).search(Halving())
    assert (boundary.found, boundary.before, boundary.after) == (True, before, after)
    assert boundary.direction == "slower"
    assert boundary.suspects == (after,)
    assert boundary.effect_interval is not None
    low, high = boundary.effect_interval
    assert low < boundary.effect < high


def test_names_every_step_of_a_ladder():
    boundary = World(line(1, 13.7, 137, 137)).search(Halving())
    assert [(step.before, step.after) for step in boundary.steps] == [("r0", "r1"), ("r1", "r2")]
    assert boundary.steps[1].ratio == pytest.approx(10, rel=0.2)


def test_no_difference_names_no_culprit_and_says_what_it_could_have_seen():
    boundary = World(line(5, 5, 5, 5)).search(Halving())
    assert not boundary.found
    assert boundary.direction == "none"
    assert (boundary.before, boundary.after, boundary.suspects) == (None, None, ())
    assert boundary.smallest_visible_pct is not None
    assert 0 < boundary.smallest_visible_pct < 20
    assert "no difference found between r0 and r3" in boundary.summary
    assert {verdict.outcome for verdict in boundary.verdicts} == {Outcome.INCONCLUSIVE}


def test_an_improvement_is_found_and_said_to_be_one():
    boundary = World(line(20, 20, 1, 1)).search(Halving())
    assert (boundary.direction, boundary.before, boundary.after) == ("faster", "r1", "r2")
    assert "the first end is the slow one" in boundary.summary
    outcomes = {verdict.candidate: verdict.outcome for verdict in boundary.verdicts}
    assert outcomes["r0"] is Outcome.SLOW
    assert outcomes["r3"] is Outcome.FAST


def test_what_cannot_be_measured_stays_suspect():
    world = World(line(1, 1, 1, 20, 20), broken=frozenset({"r2"}))
    boundary = world.search(Halving())
    assert (boundary.before, boundary.after) == ("r1", "r3")
    assert boundary.suspects == ("r2", "r3")
    assert boundary.unmeasured == {"r2": "its image could not be built"}
    assert "r2 could not be judged" in boundary.summary


def test_failing_runs_are_never_slow():
    boundary = World(line(1, 1, 1, 20), failing=frozenset({"r1"})).search(Halving())
    verdict = next(v for v in boundary.verdicts if v.candidate == "r1")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "the server died" in verdict.why
    assert (boundary.before, boundary.after) == ("r2", "r3")


def test_an_unmeasurable_end_moves_inwards():
    boundary = World(line(1, 1, 20, 20), broken=frozenset({"r3"})).search(Halving())
    assert (boundary.before, boundary.after) == ("r1", "r2")
    assert "r3" in boundary.unmeasured


@pytest.mark.parametrize("broken", [{"r1"}, {"r0"}, {"r0", "r1"}])
def test_nothing_measurable_is_no_verdict(broken):
    boundary = World(line(1, 20), broken=frozenset(broken)).search(Halving())
    assert (boundary.found, boundary.direction) == (False, "unknown")
    assert set(boundary.unmeasured) <= broken
    assert {verdict.outcome for verdict in boundary.verdicts} == {Outcome.INCONCLUSIVE}


def test_cpu_and_rate_that_disagree_are_inconclusive():
    world = World(line(1, 20, 20))
    honest = world.sample

    def lying(row, turn):
        sample = honest(row, turn)
        return with_metric(sample, RATE, 1000.0) if row == "r1" else sample

    world.sample = lying
    boundary = world.search(Halving())
    verdict = next(v for v in boundary.verdicts if v.candidate == "r1")
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "disagree" in verdict.why
    assert boundary.suspects == ("r1", "r2")


def test_pairs_alternate_their_order():
    world = World(line(1, 20))
    world.search(Halving())
    orders = [step.candidates for step in world.asked]
    assert orders[0] != orders[1]
    assert orders[0] == orders[2]


def test_the_boundary_pair_is_measured_at_least_five_times():
    world = World(line(1, 1, 1, 20, 20))
    boundary = world.search(Halving())
    together = [s for s in world.asked if set(s.candidates) == {boundary.before, boundary.after}]
    assert len(together) >= Policy().boundary_turns


def test_without_noise_the_number_of_probes_is_that_of_binary_search():
    names = 64
    world = World(line(*[1.0] * 40, *[20.0] * (names - 40)), noise=0.0)
    boundary = world.search(Halving())
    assert (boundary.before, boundary.after) == ("r39", "r40")
    probed = {row for step in world.asked for row in step.candidates} - {"r0", "r63"}
    assert len(probed) <= math.ceil(math.log2(names - 1))


@settings(max_examples=30, deadline=None)
@given(data=st.data(), size=st.integers(2, 24), effect=st.floats(1.4, 300.0))
def test_the_truth_is_always_among_the_suspects(data, size, effect):
    step = data.draw(st.integers(1, size - 1))
    names = [f"r{number}" for number in range(size)]
    broken = frozenset(data.draw(st.sets(st.sampled_from(names[1:-1]), max_size=size // 3))
                       if size > 2 else ())  # fmt: skip
    world = World(
        line(*[1.0] * step, *[effect] * (size - step)),
        noise=0.01,
        seed=data.draw(st.integers(0, 1000)),
        broken=broken,
    )
    boundary = world.search(Halving())
    assert boundary.found
    assert f"r{step}" in boundary.suspects
    assert all(row == boundary.after or row in broken for row in boundary.suspects)


@settings(max_examples=12, deadline=None)
@given(factor=st.floats(0.01, 100.0), seed=st.integers(0, 100))
def test_scaling_every_value_changes_nothing(factor, seed):
    costs = (1.0, 1.0, 3.0, 3.0)
    one = World(line(*costs), seed=seed).search(Halving())
    other = World(line(*(cost * factor for cost in costs)), seed=seed).search(Halving())
    assert (one.before, one.after, one.suspects) == (other.before, other.after, other.suspects)


def test_remaining_work_never_grows_without_bound():
    world = World(line(1, 1, 1, 1, 20, 20, 20, 20))
    world.search(Halving())
    assert all(0 <= step.remaining < 60 for step in world.asked)
