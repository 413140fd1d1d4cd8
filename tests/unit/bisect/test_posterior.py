from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from worlds import sample_of, with_metric

from dsharness.measure.metrics import COST, RATE
from dssearch.bayes import lattice
from dssearch.bayes.effect_size import effects
from dssearch.bayes.evidence import evidence, witness
from dssearch.bayes.posterior import Posterior, weigh
from dssearch.bayes.prior import Belief
from dssearch.bayes.track import track
from dssearch.question import History

NAMES = tuple(f"c{number}" for number in range(64))
NOISE = 0.05


def history(costs: dict[int, float], runs: int, seed: int = 0, factor: float = 1.0) -> History:
    """Each candidate measured as often, in an order that mixes them."""
    chance = np.random.default_rng(seed)
    samples: dict[str, tuple] = {NAMES[at]: () for at in costs}
    for run in range(runs):
        for place, (at, cost) in enumerate(costs.items()):
            value = factor * cost * float(np.exp(chance.normal(0, NOISE)))
            taken = sample_of(NAMES[at], value, run * len(costs) + place)
            samples[NAMES[at]] += (taken,)
    return History(samples=samples)


def posterior(
    known: History, prior: dict[str, float] | None = None, belief: Belief | None = None
) -> Posterior:
    line = track(NAMES, prior or {})
    seen = evidence(COST, known, line, 0, len(NAMES) - 1)
    assert seen is not None
    return weigh(seen, line, belief or Belief())


@pytest.mark.parametrize("runs", [2, 40])
@pytest.mark.parametrize("step", [1.0, 1.02, 1.05])
def test_a_finer_lattice_says_the_same(
    monkeypatch: pytest.MonkeyPatch, step: float, runs: int
) -> None:
    known = history({0: 1.0, 20: 1.0, 40: step, 63: step}, runs)
    coarse = posterior(known)
    monkeypatch.setattr(lattice, "FINENESS", 4 * lattice.FINENESS)
    monkeypatch.setattr(lattice, "REACH", 4 * lattice.REACH)
    monkeypatch.setattr(lattice, "MOST", 4 * lattice.MOST)
    fine = posterior(known)
    odds = [np.log((each.one + np.diag(each.two)) / each.none) for each in (coarse, fine)]
    assert odds[0] == pytest.approx(odds[1], abs=0.1)
    assert len(coarse.grid.ticks) < len(fine.grid.ticks) / 2


def total(found: Posterior) -> float:
    return found.none + found.ramp + float(found.one.sum() + found.two.sum())


@pytest.mark.parametrize(
    ("costs", "gap"),
    [
        ({0: 1.0, 20: 1.0, 40: 1.5, 63: 1.5}, 1),
        ({0: 1.5, 20: 1.5, 40: 1.5, 63: 1.0}, 2),  # an improvement
        ({0: 1.0, 20: 30.0, 40: 30.0, 63: 30.0}, 0),
    ],
)
def test_mass_goes_to_the_gap_with_the_step(costs, gap):
    found = posterior(history(costs, 5))
    assert found.one[gap] + found.two[gap, gap] > 0.9
    assert found.none < 0.01
    assert found.ends(gap) == (sorted(costs)[gap], sorted(costs)[gap + 1])


@pytest.mark.parametrize("least", [0.03, 0.1, 0.4])
def test_what_lies_below_a_size_is_what_the_sizes_of_the_steps_say(least):
    known = history({0: 1.0, 20: 1.0, 40: 1.1, 63: 1.1}, 5)
    found = posterior(known, belief=Belief(two=0.0))
    sizes = effects(found)
    small = sizes.posterior[np.abs(sizes.sizes) < least].sum() * found.one.sum()
    # cells that lie on both sides of it count in part
    assert found.below(least) == pytest.approx(small, abs=0.03)
    # with a second step both must be small; of steps of any size it is all of them
    both = posterior(known)
    assert both.below(least) <= both.one.sum() + both.two.sum()
    assert both.below(99.0) == pytest.approx(both.one.sum() + both.two.sum())
    for each in (found, both):
        assert each.below(least) <= each.at_most_below(least) <= each.one.sum() + each.two.sum()


def test_no_step_and_much_data_is_none():
    assert posterior(history({0: 1.0, 30: 1.0, 63: 1.0}, 40)).none > 0.7


def test_two_steps_are_told_from_one():
    found = posterior(history({0: 1.0, 20: 1.0, 25: 1.6, 40: 1.6, 45: 2.6, 63: 2.6}, 6))
    assert found.two[1, 3] > 0.9
    assert found.stepped[1] > 0.9
    assert found.stepped[3] > 0.9


def test_a_ramp_is_told_from_a_step():
    costs = {at: float(np.exp(0.6 * at / 63)) for at in (0, 9, 18, 27, 36, 45, 54, 63)}
    assert posterior(history(costs, 8)).ramp > 0.9


def test_one_wild_sample_does_not_make_a_step():
    known = history({0: 1.0, 32: 1.0, 63: 1.4}, 6)
    wild = sample_of("c32", 4.0, 99)
    found = posterior(History(samples={**known.samples, "c32": (*known.of("c32"), wild)}))
    assert found.one[1] + found.two[1, 1] > 0.9


def test_speed_that_the_samples_of_a_turn_share_is_taken_out():
    chance = np.random.default_rng(4)
    samples: dict[str, tuple] = {"c0": (), "c32": (), "c63": ()}
    for turn in range(40):
        speed = chance.normal(0, 0.3)
        for name, cost in (("c0", 1.0), ("c32" if turn % 2 else "c63", 1.3)):
            value = cost * float(np.exp(speed + chance.normal(0, 0.03)))
            taken = sample_of(name, value, turn, started_at=f"{turn:03}{name}")
            samples[name] += (taken,)
    found = posterior(History(samples=samples))
    assert found.one[0] + found.two[0, 0] > 0.9


def test_a_prior_moves_mass_where_nothing_was_measured():
    prior = dict.fromkeys(NAMES, 1.0) | {"c10": 50.0}
    found = posterior(history({0: 1.0, 63: 2.0}, 3), prior)
    line = track(NAMES, prior)
    assert line.mass(9, 10) / line.mass(0, 63) == pytest.approx(50 / 112)
    assert found.stepped[0] > 0.9


def test_the_witness_is_the_rate_where_the_cost_decides():
    line = track(NAMES, {})
    known = history({0: 1.0, 63: 2.0}, 2)
    decided = evidence(COST, known, line, 0, 63)
    assert decided is not None
    assert decided.metric == COST
    seen = witness(decided, known, line, 0, 63)
    assert seen is not None
    assert seen.metric == RATE
    blind = with_metric(sample_of("c5", 1.0, 9), COST, None)
    by_rate = History(samples={**known.samples, "c5": (blind,)})
    decided = evidence(COST, by_rate, line, 0, 63)
    assert decided is not None
    assert decided.metric == RATE
    assert witness(decided, by_rate, line, 0, 63) is None


@pytest.mark.whole
@given(
    costs=st.dictionaries(st.integers(1, 62), st.floats(0.5, 3.0), max_size=6),
    ends=st.tuples(st.floats(0.5, 3.0), st.floats(0.5, 3.0)),
    runs=st.integers(1, 5),
    factor=st.floats(1e-3, 1e3),
)
@example(costs={1: 2.0, 2: 1.5}, ends=(2.0, 0.5), runs=5, factor=1.0)  # all of one gap moves
def test_mass_is_one_and_a_factor_on_all_values_changes_nothing(costs, ends, runs, factor):
    whole = {0: ends[0], **costs, 63: ends[1]}
    found = posterior(history(whole, runs))
    assert total(found) == pytest.approx(1.0)
    assert min(found.none, found.ramp, found.one.min(), found.two.min()) >= 0
    scaled = posterior(history(whole, runs, factor=factor))
    assert scaled.none == pytest.approx(found.none, rel=1e-4, abs=1e-9)
    assert scaled.one == pytest.approx(found.one, rel=1e-4, abs=1e-9)
    again = posterior(history(whole, runs))
    assert np.array_equal(again.one, found.one)
    assert again.none == found.none


def test_a_line_turned_round_has_its_mass_turned_round():
    costs = {0: 1.0, 20: 1.0, 40: 1.3, 63: 1.3}
    there = history(costs, 4)
    turned = {NAMES[63 - NAMES.index(name)]: group for name, group in there.samples.items()}
    back = {name: tuple(s.model_copy(update={"candidate_id": name}) for s in group)
            for name, group in turned.items()}  # fmt: skip
    one, other = posterior(there), posterior(History(samples=back))
    # a step at k turned round is one at 64 - k, so gaps keep their places
    assert other.one[::-1] == pytest.approx(one.one, rel=1e-3)
