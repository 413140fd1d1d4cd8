"""When a search stops, and what it measures next: docs/search.md, the slow way."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm
from slow_sums import (
    NAMES,
    NEAR,
    STEPS,
    Sums,
    believed,
    finer,
    gaps_of,
    history,
    places,
    sums,
    weighed,
)

from dsbisect.search_options import SearchOptions
from dsharness.measure.metrics import COST
from dsharness.model import LdcltWorkload
from dssearch.bayes.answer_figures import NOISE as RATE_NOISE
from dssearch.bayes.answer_figures import NOISE_RUNS, RateDifference, difference, word
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.belief import Certainty, Tracks
from dssearch.bayes.evidence import evidence
from dssearch.bayes.line_places import Split
from dssearch.bayes.next_run import BATCHES, bits


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_certain_at_the_chances_that_the_page_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(14)."""
    finer(monkeypatch)
    found = believed(history({"a": 0.0, "c": 0.0, "d": 0.08}, 6, seed), STEPS)
    seen = found.posterior.runs
    every = weighed(sums(seen, STEPS), seen.positions, STEPS)
    total = float(sum(ways.sum() for ways in every.values()))
    step = float(sum(ways.sum() for steps, ways in every.items() if 1 in steps)) / total
    none = float(every[()].sum()) / total
    just = Certainty(level=step - NEAR, real=1 - none - NEAR)
    assert found.settled(just)
    assert not found.settled(replace(just, level=step + NEAR))
    assert not found.settled(replace(just, real=1 - none + NEAR))
    # in the other gap lies one that was not measured
    open_known, any_chance = history({"a": 0.0, "c": 0.2, "d": 0.2}, 6, seed), Certainty(real=0.9)
    assert not believed(open_known, STEPS).settled(any_chance)
    assert believed(open_known, STEPS, NAMES, "b").settled(any_chance)


@pytest.mark.parametrize(("level", "most_none"), [(0.9, 0.03), (0.95, 0.03), (0.995, 0.005)])
def test_none_is_as_unlikely_as_the_level_asks_and_at_most_3_percent(
    level: float, most_none: float
) -> None:
    """(14), (16)."""
    search = SearchOptions(level=level).search(LdcltWorkload.model_construct(duration_s=3.0))
    assert isinstance(search, Bayes)
    assert 1 - search.certainty.real == pytest.approx(most_none)
    assert search.certainty.level == level


def worth(before: int, runs: int, ratio: float) -> float:
    """(13): in runs of builds that do not differ, from the covariance of the runs of one build."""

    def known(count: int) -> float:
        every = np.eye(count) + ratio
        return float(np.linalg.inv(every).sum())

    return known(before + runs) - known(before)


def told(slow: Sums, table: np.ndarray, noise: float) -> float:
    """(12): bits about the row of a table of chances, from a value near the level."""
    near = norm.pdf(slow.apart, scale=noise)
    both = table @ (near / near.sum(1, keepdims=True))

    def entropy(chances: np.ndarray) -> float:
        some = chances[chances > 0]
        return -float(some @ np.log2(some))

    return entropy(both.sum(1)) + entropy(both.sum(0)) - entropy(both.ravel())


def named(
    slow: Sums, positions: np.ndarray, every: Mapping[tuple[int, ...], np.ndarray], spot: int
) -> np.ndarray:
    """What would be named, and the level of a candidate: the chance of both together."""
    gaps, total = gaps_of(positions), sum(every.values())
    stepped = Counter[int]()
    for steps, ways in every.items():
        stepped.update(dict.fromkeys(steps, float(ways.sum())))
    found: dict[tuple[int, ...], np.ndarray] = {}
    for prior, where in places(positions, STEPS):
        steps = tuple(gaps[place - 1] for place in where)
        levels = prior * slow.on(steps, sum(place <= spot for place in where))
        if len(steps) != 1:  # weighed by what the ways are worth after all
            levels *= (levels.sum() * total / total.sum() / levels.sum(1))[:, None]
        answer = tuple(sorted(steps, key=lambda gap: -stepped[gap])[:1])
        if spot not in positions and answer == (gaps[spot - 1],):
            place = next(place for place in where if gaps[place - 1] == answer[0])
            answer = (*answer, place <= spot)
        found[answer] = found.get(answer, 0.0) + levels.sum(0)
    return np.array(list(found.values())) / sum(each.sum() for each in found.values())


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("middle", [0.0, 0.03, 0.1])
def test_a_run_is_expected_to_tell_the_bits_that_the_page_says(middle: float, seed: int) -> None:
    found = believed(history({"a": 0.0, "c": middle, "d": 0.1}, 4, seed), STEPS)
    seen, split = found.posterior.runs, found.split(0)
    assert split is not None
    slow = sums(seen, STEPS)
    every = weighed(slow, seen.positions, STEPS)
    shares = sum(every.values()) / sum(ways.sum() for ways in every.values())
    square = shares @ slow.squares
    noise, ratio = math.sqrt(square), shares @ slow.scatters**2 / square
    options: list[int | Split] = [0, 1, 2, split]
    for option, fast in zip(options, bits(found.posterior, options), strict=True):
        spot = split.position if option is split else int(seen.positions[option])
        before = 0 if option is split else 4
        table = named(slow, seen.positions, every, spot)
        fresh = [told(slow, table, noise / math.sqrt(runs)) for runs in BATCHES]
        counted = [worth(before, runs, ratio) for runs in BATCHES]
        # straight from one number of runs to the next
        assert fast == pytest.approx(np.interp(counted, [0, *BATCHES], [0, *fresh]), rel=0.04)


def test_a_difference_is_that_of_the_medians_of_all_runs() -> None:
    """(18)."""
    chance = np.random.default_rng(3)
    spread = float(np.std(np.median(chance.normal(size=(4000, 18)), axis=1))) * math.sqrt(18)
    costs = {"a": 0.0, "b": 0.01, "c": 0.2, "d": 0.22}
    known = history(costs, 9, 0)
    seen = evidence(COST, known, Tracks().of(NAMES), 0, 3)
    assert seen is not None
    found = difference(seen, np.array([0, 1]), np.array([2, 3]))
    assert found is not None
    runs = {name: [math.log(COST.slowness(each) or 0) for each in known.of(name)] for name in NAMES}
    before, after = runs["a"] + runs["b"], runs["c"] + runs["d"]
    assert found.size == pytest.approx(np.median(after) - np.median(before))
    squares = sum((run - np.median(each)) ** 2 for each in runs.values() for run in each)
    noise = math.sqrt((squares + NOISE_RUNS * RATE_NOISE**2) / (36 - 4 + NOISE_RUNS))
    assert found.error == pytest.approx(spread * noise * math.sqrt(1 / 18 + 1 / 18), rel=0.06)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_witness_contradicts_where_the_page_says(sign: int) -> None:
    """(19)."""
    sizes, parts, errors = (0.05, 0.1, 0.3), (-0.5, 0.0, 0.45, 0.55, 1.0), (0.005, 0.02, 0.05)
    words = set()
    for decider, part, one, two in itertools.product(sizes, parts, errors, errors):
        size = part * decider
        clear = decider - size > 2.58 * math.sqrt(one**2 + two**2)
        found = word(
            RateDifference(size=sign * decider, error=one),
            RateDifference(size=sign * size, error=two),
        )
        assert (found == "contradicts") == (size < decider / 2 and clear)
        assert (found == "agrees") == (found != "contradicts" and size > 2.58 * two)
        words.add(found)
    assert words == {"agrees", "cannot tell", "contradicts"}
