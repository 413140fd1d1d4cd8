"""The equations of docs/search-model.md, computed the slow way on small histories."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t as student
from worlds import sample_of

from dsharness.measure.metrics import COST
from dssearch.bayes.belief import Beliefs, Certainty, Tracks, believe
from dssearch.bayes.evidence import Evidence, evidence
from dssearch.bayes.lattice import noise_estimate, noises_around
from dssearch.bayes.machine_speed import GROWTHS, NOISES, PRIOR, TAIL, widened
from dssearch.bayes.prior import Belief
from dssearch.question import History, Question

NAMES = ("a", "b", "c", "d")
NOISE = 0.03
# Without ramps and second steps a sum over one level or two is all there is.
PLAIN = Belief(two=0.0, ramp=0.0)
FINE = 0.06  # of the noise: cells of the slow sums
FAR = 9.0  # times the noise and what builds differ by, on both sides of what was measured


def history(costs: dict[str, float], runs: int, seed: int) -> History:
    chance = np.random.default_rng(seed)
    samples = {
        name: tuple(
            sample_of(name, float(np.exp(cost + NOISE * chance.normal())), 3 * run + at)
            for run in range(runs)
        )
        for at, (name, cost) in enumerate(costs.items())
    }
    return History(samples=samples)


def believed(known: History) -> Beliefs:
    question = Question(series_id="s", line=NAMES, workload_id="w", settings_id="default")
    found = believe(question, known, Tracks().of(NAMES), PLAIN, {})
    assert found is not None
    return found


def likelihoods(seen: Evidence, levels: np.ndarray, size: float, tail: float, scatter: float):
    """(6): of each candidate, for each level; the integral over the build's own as a sum."""
    own = np.exp(-0.5 * (np.subtract.outer(levels, levels) / scatter) ** 2)
    own /= own.sum(1, keepdims=True)
    tables = []
    for at in range(len(seen.positions)):
        values = seen.values[seen.owner == at]
        runs = student.pdf((values[:, None] - levels) / size, tail) / size
        tables.append(own @ runs.prod(0))
    return np.array(tables)


def slow_odds(seen: Evidence, least: float) -> tuple[np.ndarray, float]:
    """(7), (8), (11): of one step in each gap, and of one below a size, against none."""
    noise = noise_estimate(seen, PLAIN)
    sizes, priors = noises_around(noise, PLAIN)
    reach = FAR * math.hypot(noise, 0.01)
    levels = np.arange(seen.values.min() - reach, seen.values.max() + reach, FINE * noise)
    apart = np.abs(np.subtract.outer(levels, levels))
    none, one, small = 0.0, np.zeros(len(seen.positions) - 1), 0.0
    for scatter, share in PLAIN.scatters:
        low = max(PLAIN.least_step(noise), PLAIN.least_in_scatter * scatter)
        density = (apart >= low) / np.maximum(apart, low) / (2 * math.log(PLAIN.most_log / low))
        for size, prior in zip(sizes, priors, strict=True):
            for tail in PLAIN.tails:
                tables = likelihoods(seen, levels, float(size), tail, scatter)
                weight = share * math.exp(prior)
                none += weight * PLAIN.none * tables.prod(0).sum()
                for gap in range(len(one)):
                    pair = np.outer(tables[: gap + 1].prod(0), tables[gap + 1 :].prod(0))
                    each = weight * PLAIN.one * pair * density * FINE * noise
                    one[gap] += each.sum() / 3 * np.diff(seen.positions)[gap]
                    small += each[apart < least].sum() / 3 * np.diff(seen.positions)[gap]
    return one / none, small / none


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "costs", [{"a": 0.0, "c": 0.0, "d": 0.0}, {"a": 0.0, "c": 0.06, "d": 0.06}]
)
def test_one_step_and_none_are_the_sums_that_the_page_says(
    costs: dict[str, float], seed: int
) -> None:
    found = believed(history(costs, 6, seed))
    least = found.least(Certainty())
    one, small = slow_odds(found.posterior.seen, least)
    fast = found.posterior.one / found.posterior.none
    # what is left is the lattice, and what its points leave out
    assert np.log(fast) == pytest.approx(np.log(one), abs=0.06)
    # (15): nothing is none, and what is too small to be looked for
    nothing = (1 + small) / (1 + one.sum())
    assert found.nothing(Certainty()) == pytest.approx(nothing, abs=0.01)


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
