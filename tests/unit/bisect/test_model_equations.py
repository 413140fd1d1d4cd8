"""The equations of docs/search.md, computed the slow way on small histories."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student
from slow_sums import (
    LONG,
    NEAR,
    NOISE,
    PLAIN,
    RAMPS,
    STEPS,
    Sums,
    believed,
    finer,
    gaps_of,
    history,
    modes,
    of_gaps,
    sums,
    weighed,
)
from worlds import sample_of

from dsharness.measure.metrics import COST
from dssearch.bayes.belief import Certainty, Tracks
from dssearch.bayes.effect_size import effects
from dssearch.bayes.evidence import Evidence, evidence
from dssearch.bayes.lattice import noise_estimate
from dssearch.bayes.likelihood import LARGEST, SHORTEST, SIZES, ramp_masses
from dssearch.bayes.machine_speed import GROWTHS, NOISES, PRIOR, TAIL, widened
from dssearch.bayes.noise_shapes import Ways, slow_mode
from dssearch.bayes.prior import Belief
from dssearch.question import History

RISING = {"a": 0.0, "d": 0.05, "g": 0.1, "i": 0.1}


@dataclass(frozen=True, kw_only=True, eq=False)
class Ramped:
    """By gaps of start and end: the chance, next to that of the steps, and the expected rise."""

    chances: dict[tuple[int, int], float]
    rises: dict[tuple[int, int], float]


def ramped(seen: Evidence, belief: Belief) -> Ramped:
    """(10): a sum over levels and rises, with nothing taken as Gaussian, and none odd."""
    slow, low = (
        sums(seen, replace(belief, odd=0.0)),
        belief.least_step(noise_estimate(seen, belief)),
    )
    cell, span = slow.levels[1] - slow.levels[0], np.ptp(slow.levels)
    rises = np.arange(-span / 2, span / 2, 2 * cell)
    sizes = np.geomspace(low, max(LARGEST, 2 * low), SIZES)
    prior = 2 * cell * norm.pdf(rises[:, None], scale=sizes).mean(1)
    masses, found = ramp_masses(seen.positions), Ramped(chances={}, rises={})
    chance = belief.ramp * (1 - belief.odd) ** (len(seen.positions) - 2)
    for first, last in itertools.combinations(range(len(seen.positions) - 1), 2):
        likely = np.zeros(len(rises))
        for start in (seen.positions[first], seen.positions[first + 1] - 1):
            for end in (seen.positions[last] + 1, seen.positions[last + 1]):
                part = np.clip((seen.positions - start) / (end - start), 0, 1)
                likely += up(slow, part[:, None] * rises) / 4
        total = chance * masses[first, last] * likely * prior
        found.chances[first, last] = float(total.sum())
        found.rises[first, last] = float(total @ rises / total.sum())
    return found


def up(slow: Sums, off: np.ndarray) -> np.ndarray:
    """For each rise: how likely candidates are so far off a level, whatever that is."""
    likely, cell = slow.weights[:, None, None], slow.levels[1] - slow.levels[0]
    far = np.arange(len(slow.levels)) + off[:, :, None] / cell
    low = np.floor(far).astype(int)
    for table, at, rest in zip(slow.tables.swapaxes(0, 1), low, far - low, strict=True):
        both = np.pad(table, ((0, 0), (1, 2)))
        one, two = (np.clip(at + 1 + more, 0, len(slow.levels) + 2) for more in (0, 1))
        likely = likely * (both[:, one] * (1 - rest) + both[:, two] * rest)
    return likely.sum((0, 2))


@pytest.mark.whole
@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "costs",
    [
        {"a": 0.0, "c": 0.0, "d": 0.0},
        {"a": 0.0, "c": 0.06, "d": 0.06},
        {"a": 0.0, "b": 0.06, "c": 0.06, "d": 0.1},
    ],
)
def test_steps_and_none_are_the_sums_that_the_page_says(
    costs: dict[str, float], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = believed(history(costs, 6, seed), STEPS)
    slow, positions = sums(found.posterior.runs, STEPS), found.posterior.runs.positions
    every = weighed(slow, positions, STEPS)
    total = float(sum(ways.sum() for ways in every.values()))
    shares = sum(every.values()) / total
    noise, scatter = (math.sqrt(shares @ each) for each in (slow.squares, slow.scatters**2))
    least = max(0.8 * noise, 2 * scatter)
    nothing = float(every[()].sum())
    for steps, ways in every.items():
        small = slow.along(steps, least) / slow.along(steps)
        if len(steps) == 1:
            nothing += float(ways @ small)
        elif steps:  # weighed by what the ways are worth after all
            nothing += float(ways.sum() * (shares @ small))
    for error in (0.06, 0.02):  # the lattice as it is, and a finer one
        fast = of_gaps(found.posterior)
        # that is (6) to (9), (11)
        for steps, ways in every.items():
            odds = math.log(ways.sum() / every[()].sum())
            assert math.log(fast[steps] / fast[()]) == pytest.approx(odds, abs=error)
        # (2), (3), (17): what is expected of noise and of builds
        assert found.posterior.noise == pytest.approx(noise, rel=error / 4)
        assert found.posterior.scatter == pytest.approx(scatter, rel=error / 4)
        assert found.least(Certainty()) == pytest.approx(least, rel=error / 4)
        # (15): nothing is none, and what is too small to be looked for
        assert found.nothing(Certainty()) == pytest.approx(nothing / total, abs=0.01)
        finer(monkeypatch)
        found = believed(history(costs, 6, seed), STEPS)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_one_that_is_odd_is_part_of_each_history(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    finer(monkeypatch)
    costs = {"a": 0.0, "c": 0.2, "e": 0.0, "g": 0.0, "i": 0.0}
    found = believed(history(costs, 6, seed), STEPS, LONG).posterior
    every = weighed(sums(found.runs, STEPS), found.runs.positions, STEPS)
    fast = of_gaps(found)
    for steps, ways in every.items():
        if len(steps) == 2 and steps[1] - steps[0] == 1:
            continue  # where the odd one lies between both sides of a step it counts for these
        odds = ways.sum() / every[()].sum()
        assert math.log(fast[steps] / fast[()]) == pytest.approx(math.log(odds), abs=0.02)


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize(("slower", "runs", "seed"), [(0.3, 8, 1), (0.15, 5, 3), (0.15, 5, 6)])
def test_a_slow_mode_is_fitted_and_weighed(
    slower: float, runs: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(4): it is where it fits best with free levels, and its ways join the others."""
    finer(monkeypatch)
    known = history({"a": 0.0, "c": 0.1, "d": 0.1}, runs, seed, slower=slower)
    found = believed(known, PLAIN).posterior
    slow = slow_mode(found.runs, PLAIN)
    assert slow is not None

    def fit(share: float, late: float) -> float:
        levels = np.linspace(found.runs.values.min() - 0.5, found.runs.values.max(), 501)
        way, best = (slow.size, 1e6, share, late), 0.0
        for at in range(3):
            values = found.runs.values[found.runs.owner == at]
            best += float(np.log(modes(values[:, None] - levels, way)).sum(0).max())
        return best

    best = fit(slow.share, slow.jump)
    assert slow.fit + slow.unusual == pytest.approx(best, abs=0.1)
    others = itertools.product((0.8, 1.0, 1.25), (0.97, 1.0, 1.03))
    assert all(fit(slow.share * one, slow.jump * two) < best + 0.1 for one, two in others)
    every = weighed(sums(found.runs, PLAIN), found.runs.positions, PLAIN)
    odds = [math.log(every[(gap,)].sum() / every[()].sum()) for gap in range(2)]
    assert np.log(found.one / found.none) == pytest.approx(odds, abs=0.03)


def test_the_density_of_each_way_is_the_one_that_the_page_says() -> None:
    """(4), and Student's t."""
    chance = np.random.default_rng(0)
    made = [(0.03, 4.0, 0.0, 0.0), (0.02, 100.0, 0.0, 0.0), (0.02, 30.0, 0.3, 0.2)]
    sizes, tails, share, late = np.array(made).T
    ways = Ways(
        sizes=sizes, tails=tails, slow=share, jump=late, kinds=np.zeros(3, int), log_prior=share
    )
    values, scales = chance.normal(0, 0.1, 7), chance.uniform(1, 3, 7)
    levels = np.linspace(-0.2, 0.2, 5)
    groups = np.array([0, 3])
    distance = (values[:, None] - levels) / scales[:, None]
    for way, logs in zip(made, ways.log_densities(distance, scales[:, None], groups), strict=True):
        each = np.log(modes(values[:, None] - levels, way, scales[:, None]))
        assert logs == pytest.approx(np.stack([each[:3].sum(0), each[3:].sum(0)]))


@pytest.mark.parametrize("positions", [(0, 20, 40, 63), (0, 8, 20, 63), (0, 32, 48, 64, 128)])
def test_any_start_and_any_length_of_a_ramp_is_as_likely(positions: tuple[int, ...]) -> None:
    """Lengths on a log scale."""
    place = np.array(positions)
    gaps, slow = gaps_of(place), np.zeros((len(place) - 1, len(place) - 1))
    for first, last in itertools.combinations(range(place[-1] + 1), 2):
        if last - first >= SHORTEST:
            slow[gaps[first], gaps[last - 1]] += 1 / (last - first)
    slow /= slow.sum()
    found = ramp_masses(place)
    assert found == pytest.approx(slow, abs=0.03)
    assert found.sum() == pytest.approx(1)


@pytest.mark.whole
@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", [0.0, 0.03, 0.1])
def test_a_finer_lattice_moves_no_gap_far(
    step: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 24 candidates with 6 runs each: most where the odds are small."""
    names = [f"c{at}" for at in range(24)]
    costs = {name: step * (at >= 12) for at, name in enumerate(names)}
    known = history(costs, 6, seed)
    coarse = believed(known, Belief(), names).posterior
    finer(monkeypatch)
    fine = believed(known, Belief(), names).posterior
    one, two = ((each.one + np.diag(each.two)) / each.none for each in (coarse, fine))
    moved = np.abs(np.log(one / two))
    assert moved.max() < 0.6
    assert moved[two > 0.01].max(initial=0.0) < 0.4
    assert coarse.one == pytest.approx(fine.one, abs=0.02)
    assert coarse.none == pytest.approx(fine.none, abs=0.02)


@pytest.mark.parametrize("step", [0.0, 0.06, 0.5])
def test_sizes_of_a_step_are_as_likely_on_any_lattice(
    step: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(11) is the prior of a size, from whichever level a step begins."""
    known = history({"a": 0.0, "b": 0.0, "c": step, "d": step}, 8, 1)
    coarse = believed(known, STEPS)
    one = effects(coarse.posterior)
    finer(monkeypatch)
    other = effects(believed(known, STEPS).posterior)
    for each in (one, other):
        assert each.prior.sum() < 1.01
    width = coarse.posterior.grid.width
    assert np.log(one.interval(0.95)) == pytest.approx(
        np.log(other.interval(0.95)), abs=1.5 * width
    )
    if step:  # near none, the least step cuts a cell
        assert one.gain.max() == pytest.approx(other.gain.max(), rel=0.15)


@pytest.mark.whole
@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("costs", [RISING, dict.fromkeys(RISING, 0.0)])
def test_a_ramp_is_the_sum_that_the_page_says(
    costs: dict[str, float], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    finer(monkeypatch)
    beliefs = believed(history(costs, 6, seed), RAMPS, LONG)
    found, seen = beliefs.posterior, beliefs.posterior.runs
    slow = ramped(seen, RAMPS)
    every = weighed(sums(seen, RAMPS), seen.positions, RAMPS)
    none = float(every[()].sum())
    for gaps, chance in slow.chances.items():
        odds = math.log(chance / none)
        assert math.log(found.ramps[gaps] / found.none) == pytest.approx(odds, abs=0.03)
        # least squares, which no prior makes smaller
        assert found.ramp_sizes[gaps] == pytest.approx(slow.rises[gaps], abs=0.5 * NOISE)
    # by (16) it is certain at these chances
    total = sum(slow.chances.values()) + float(sum(ways.sum() for ways in every.values()))
    ramp, none = sum(slow.chances.values()) / total, none / total
    rise = sum(slow.rises[gaps] * chance for gaps, chance in slow.chances.items()) / ramp / total
    just = Certainty(level=ramp - NEAR, real=1 - none - NEAR, smallest=0.7 * abs(rise))
    if 0.7 * abs(rise) > 2 * found.scatter:
        assert beliefs.ramped(just)
    assert not beliefs.ramped(replace(just, level=ramp + NEAR))
    assert not beliefs.ramped(replace(just, real=1 - none + NEAR))
    assert not beliefs.ramped(replace(just, smallest=1.5 * abs(rise) + NOISE))


@pytest.mark.parametrize("harm", [1.0, 6.0])
def test_a_burdened_run_varies_as_much_more_as_the_runs_say(harm: float) -> None:
    chance = np.random.default_rng(1)
    burden = np.tile([0.0, 0.0, 15.0], 8)
    noises = 0.02 * np.where(burden > 0, harm, 1.0) * chance.normal(size=24)
    samples = {
        name: tuple(
            sample_of(name, math.exp(noises[run]), run, steal_pct=burden[run])
            for run in range(at, 24, 2)
        )
        for at, name in enumerate("ab")
    }
    seen = evidence(COST, History(samples=samples), Tracks().of(("a", "b")), 0, 1)
    assert seen is not None
    rest = (seen.values - seen.middles[seen.owner]) * math.sqrt(12 / 11)
    middle = 1.4826 * float(np.median(np.abs(rest)))
    chances = []
    for growth, prior in zip(GROWTHS, PRIOR, strict=True):
        likely = 0.0
        for noise in middle * NOISES:
            scales = noise * np.sqrt(1 + growth * seen.burden**2)
            likely += float((student.pdf(rest / scales, TAIL) / scales).prod())
        chances.append(prior * likely)
    growth = float(np.average(GROWTHS, weights=chances))
    assert widened(seen).scales ** 2 == pytest.approx(1 + growth * seen.burden**2)
