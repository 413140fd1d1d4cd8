"""What the search says of histories that are no single step, and of noise that is not Gaussian."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsbisect.rows_study import ROWS
from dsbisect.search_options import SearchOptions
from dsharness.errors import UsageError
from dsharness.model import Boundary
from dssearch.bayes.bayes_search import OTHERS, Bayes
from dssearch.bayes.belief import Certainty
from dssearch.bayes.prior import Belief, Budget, scatters
from dssearch.forecast import SimulatedRun, walk

LINE = tuple(f"c{at}" for at in range(32))


def answer(
    search: Bayes,
    levels: np.ndarray,
    noise: float,
    *,
    slow: tuple[float, float] = (0.0, 0.0),
    rate_noise: float = 0.0,
    seed: int = 0,
) -> tuple[Boundary, int]:
    """Of a search on made-up runs, and how many those were; ``slow`` is a share and a log."""
    chance = np.random.default_rng(seed)

    def run(name: str, _: int) -> SimulatedRun:
        level = float(levels[LINE.index(name)])
        mode = slow[1] * (chance.random() < slow[0])
        cost = level + mode + noise * float(chance.normal())
        rate = -level - rate_noise * float(chance.normal()) if rate_noise else -cost
        return SimulatedRun(cost=cost, rate=rate)

    boundary, samples = walk(search, LINE[: len(levels)], run)
    return boundary, sum(len(group) for group in samples.values())


def stepped(*steps: tuple[int, float]) -> np.ndarray:
    levels = np.zeros(len(LINE))
    for at, size in steps:
        levels[at:] += size
    return levels


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_what_builds_differ_by_is_no_culprit(seed: int) -> None:
    own = 0.03 * np.random.default_rng(seed).normal(size=len(LINE))
    boundary, _ = answer(Bayes(), own, 0.01, seed=seed)
    assert not boundary.found, boundary.summary
    if boundary.shape == "builds":
        told = re.search(r"the ends differ by ([\d.]+) %, within what builds", boundary.summary)
        assert told is not None
        assert boundary.smallest_visible_pct is not None
        assert float(told[1]) <= boundary.smallest_visible_pct + 0.1
        builds = {verdict.candidate for verdict in boundary.verdicts}
        assert {"c0", "c1", "c30", "c31"} <= builds


@pytest.mark.whole
def test_none_says_what_less_would_take() -> None:
    rough, _ = answer(Bayes(), stepped(), 0.2)
    assert "one of 10 % needs `--smallest 10`" in rough.summary, rough.summary
    fine, _ = answer(Bayes(), stepped(), 0.01)
    assert "--smallest" not in fine.summary, fine.summary


def test_a_large_step_is_named_although_builds_differ() -> None:
    own = 0.02 * np.random.default_rng(5).normal(size=len(LINE))
    boundary, _ = answer(Bayes(), stepped((20, 0.3)) + own, 0.02)
    assert boundary.after == "c20"


def test_a_slow_mode_is_no_step() -> None:
    boundary, _ = answer(Bayes(), stepped(), 0.03, slow=(0.3, 0.22))
    assert not boundary.found, boundary.summary


def test_a_step_smaller_than_the_slow_mode_is_found() -> None:
    boundary, _ = answer(Bayes(), stepped((11, 0.14)), 0.03, slow=(0.3, 0.22), seed=1)
    assert boundary.after == "c11"


def test_a_ramp_is_told_with_its_range() -> None:
    levels = np.clip((np.arange(len(LINE)) - 9) / 10, 0, 1) * math.log(1.5)
    boundary, _ = answer(Bayes(), levels, 0.02)
    assert (boundary.found, boundary.shape, boundary.direction) == (False, "ramp", "slower")
    inside = {f"c{at}" for at in range(10, 20)}
    assert len(inside & set(boundary.suspects)) >= 6
    assert boundary.effect == pytest.approx(1.5, rel=0.1)


@pytest.mark.whole
def test_a_change_that_was_taken_back_is_not_denied() -> None:
    there_and_back = stepped((5, 0.3), (9, -0.3))
    boundary, _ = answer(Bayes(), there_and_back, 0.01)
    assert (boundary.direction, boundary.shape) == ("none", "ends")
    assert "--inside K" in boundary.summary
    looked = Bayes(certainty=replace(Certainty(), inside=7))
    assert answer(looked, there_and_back, 0.01)[0].found


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_called_alone_has_neighbours_that_were_measured(seed: int) -> None:
    """With only c8 seen of what is slow from c5 to c8, one build seems to differ alone."""
    there_and_back = stepped((5, 0.3), (9, -0.3))
    looked = Bayes(certainty=replace(Certainty(), inside=7))
    boundary, _ = answer(looked, there_and_back, 0.01, seed=seed)
    assert boundary.found, boundary.summary
    assert not boundary.odd


def test_a_difference_that_does_not_matter_is_not_looked_for() -> None:
    options = SearchOptions(smallest_pct=20)
    certainty = Certainty(smallest=options.smallest_log)
    search = Bayes(belief=options.belief(Belief()), certainty=certainty)
    boundary, runs = answer(search, stepped((20, 0.02)), 0.01)
    assert boundary.direction == "none"
    assert boundary.smallest_visible_pct is not None
    assert 20 <= boundary.smallest_visible_pct < 30
    assert runs < 12


@settings(deadline=None)
@given(pct=st.floats(0.1, 100), noise=st.floats(0.005, 0.3))
def test_what_matters_to_you_cuts_nothing_off_the_prior(pct: float, noise: float) -> None:
    for options in (SearchOptions(smallest_pct=pct), SearchOptions(expected_pct=pct)):
        told = options.belief(Belief())
        assert told.least_step(noise) <= Belief().least_step(noise)
        assert told.least_step(noise) <= (options.smallest_log or 0.0) + 1e-12


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("told", [{"smallest_pct": 6.5}, {"expected_pct": 15.0}])
def test_a_step_just_above_what_matters_is_not_said_to_be_larger(
    told: dict[str, float], seed: int
) -> None:
    options = SearchOptions(**told)  # type: ignore[arg-type]
    certainty = Certainty(smallest=options.smallest_log, expected=options.expected_log)
    search = Bayes(belief=options.belief(Belief()), certainty=certainty)
    boundary, _ = answer(search, stepped((20, math.log(1.076))), 0.02, seed=seed)
    if boundary.found:
        assert boundary.effect_interval is not None
        assert boundary.effect_interval[0] <= 1.076


@pytest.mark.whole
def test_what_was_expected_and_does_not_reproduce_ends_early() -> None:
    expected = SearchOptions(expected_pct=50)
    search = Bayes(
        belief=expected.belief(Belief()),
        certainty=Certainty(smallest=expected.smallest_log, expected=math.log(1.5)),
    )
    boundary, runs = answer(search, stepped(), 0.08)
    assert boundary.direction == "none"
    assert "the expected 50 % does not reproduce" in boundary.summary
    assert runs < answer(Bayes(), stepped(), 0.08)[1]


@pytest.mark.parametrize("options", [{"smallest_pct": 0}, {"expected_pct": -1}, {"inside": -1}])
def test_options_that_make_no_sense(options: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        SearchOptions(**options)  # type: ignore[arg-type]


def test_every_step_is_named_if_asked_for() -> None:
    search = Bayes(certainty=Certainty(every=True))
    boundary, _ = answer(search, stepped((8, 0.4), (23, 0.4)), 0.1)
    assert {step.after for step in boundary.steps} == {"c8", "c23"}
    assert {step.before for step in boundary.steps} == {"c7", "c22"}


@pytest.mark.whole
def test_doubt_about_a_second_step_does_not_lose_the_first() -> None:
    search = Bayes(certainty=Certainty(every=True), budget=Budget(runs=20))
    boundary, _ = answer(search, stepped((4, 1.1), (7, 0.07)), 0.05)
    assert boundary.after == "c4"
    assert "a second step is possible" in boundary.summary


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [0.13, 0.26])
def test_a_witness_that_knows_nothing_gets_a_few_more_runs_and_no_veto(noise: float) -> None:
    levels = stepped((13, 0.1))
    asked = Bayes(certainty=Certainty(witness_runs=3))
    boundary, runs = answer(asked, levels, 0.03, rate_noise=noise)
    assert (boundary.after, boundary.witness) in {("c13", "cannot tell"), ("c13", "agrees")}
    assert runs <= answer(Bayes(), levels, 0.03, rate_noise=noise)[1] + 2 * 4


@pytest.mark.whole
@settings(max_examples=6, deadline=None)
@given(
    length=st.integers(2, 20),
    scatter=st.sampled_from([0.0, 0.01, 0.03]),
    runs=st.integers(4, 40),
    size=st.sampled_from([0.0, 0.0, 0.03]),
    seed=st.integers(0, 99),
)
def test_no_difference_is_said_with_97_per_cent_or_not_at_all(
    length: int, scatter: float, runs: int, size: float, seed: int
) -> None:
    chance = np.random.default_rng(seed)
    levels = scatter * chance.normal(size=length) + size * (np.arange(length) >= length // 2)
    search = Bayes(budget=Budget(runs=runs))
    boundary, _ = answer(search, levels, 0.02, seed=seed)
    if boundary.direction == "none":
        assert boundary.confidence is not None
        assert boundary.confidence >= Certainty.none
        told = re.search(r"no difference of (\d+) % or more", boundary.summary)
        assert told is not None
        assert boundary.smallest_visible_pct is not None
        assert int(told[1]) >= boundary.smallest_visible_pct > 100 * Certainty.visible * 0.02 * 0.5


def test_what_is_not_certain_enough_says_what_it_would_take() -> None:
    """Two rows whose builds differ: no run of the same two would tell more."""
    rows = Belief(smallest_effect=1.25, scatters=scatters((0.02, 0.3), (0.05, 0.6), (0.1, 0.1)))
    boundary, _ = answer(Bayes(belief=rows), np.array([0.0, 0.16]), 0.01)
    assert boundary.direction == "unknown"
    assert boundary.summary.startswith("undecided")
    assert OTHERS in boundary.summary


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_differ_by_themselves_end_the_search(seed: int) -> None:
    """One of four costs 30 % more: a change and its end, or a row of its own kind.

    No number of runs tells which.
    """
    rows = Belief(smallest_effect=1.25, scatters=scatters((0.02, 0.3), (0.05, 0.6), (0.1, 0.1)))
    levels = np.array([0.0, 0.28, 0.04, 0.0])
    boundary, runs = answer(Bayes(belief=rows, survey_up_to=4), levels, 0.05, seed=seed)
    assert runs <= 80
    assert boundary.direction == "unknown" or boundary.after == "c1", boundary.summary


@pytest.mark.whole
def test_a_step_that_is_missed_is_not_larger_than_what_could_have_been_seen() -> None:
    """Behind the first build alone, and half as large as the noise."""
    boundaries = [answer(Bayes(), stepped((1, 0.01)), 0.02, seed=seed)[0] for seed in range(4)]
    missed = [boundary for boundary in boundaries if boundary.direction == "none"]
    assert missed
    for boundary in missed:
        assert boundary.smallest_visible_pct is not None
        assert boundary.smallest_visible_pct >= 100 * math.expm1(0.01)


@pytest.mark.whole
def test_a_single_run_that_strays_is_taken_again_before_no_difference_is_said() -> None:
    """It is the first run of any candidate but the ends."""
    looking = Bayes(certainty=replace(Certainty(), inside=1))

    def run(name: str, _: int) -> SimulatedRun:
        stray = 0.0
        if not wild and name not in (LINE[0], LINE[-1]):
            wild.append(name)
            stray = 0.1
        cost = stray + 0.01 * float(chance.normal())
        return SimulatedRun(cost=cost, rate=-cost)

    for seed in range(2):
        chance = np.random.default_rng(seed)
        wild: list[str] = []
        boundary, samples = walk(looking, LINE, run)
        assert boundary.direction == "none"
        assert len(samples[wild[0]]) > 1


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("odd", [0.18, -0.18])
def test_an_odd_candidate_hides_no_culprit(seed: int, odd: float) -> None:
    """The one that the first split measures differs alone; the step lies elsewhere."""
    levels = stepped((9, 0.06))
    levels[15] += odd
    boundary, _ = answer(Bayes(), levels, 0.01, seed=seed)
    assert boundary.after == "c9", boundary.summary
    (alone,) = boundary.odd
    assert alone.after == "c15"
    assert math.log(alone.ratio) == pytest.approx(odd, abs=0.03)
    word = "slower" if odd > 0 else "faster"
    assert re.search(rf"note: c15 alone is 1\.\d+ times {word}", boundary.summary)


@pytest.mark.whole
@pytest.mark.few(1)
@pytest.mark.parametrize(("step", "odd"), [(2, 4), (6, 4), (9, 5)])
def test_nor_does_one_in_a_short_line(step: int, odd: int) -> None:
    levels = stepped((step, 0.06))[: max(9, step + 3)]
    levels[odd] += 0.18
    boundary, _ = answer(Bayes(), levels, 0.01)
    assert boundary.after == f"c{step}", boundary.summary
    assert [alone.after for alone in boundary.odd] == [f"c{odd}"]


def test_what_differs_at_an_end_is_a_step() -> None:
    boundary, _ = answer(Bayes(), stepped((31, 0.18)), 0.01)
    assert (boundary.after, boundary.odd) == ("c31", ())


def test_a_candidate_on_the_way_up_is_a_step_of_its_own() -> None:
    boundary, _ = answer(Bayes(), stepped((10, 1.4), (11, 1.6)), 0.02)
    assert (boundary.after, boundary.also, boundary.odd) == ("c10", ("c11",), ())


@pytest.mark.whole
def test_what_stays_undecided_names_each_likely_step_with_its_size() -> None:
    """With one build each that may differ by 5 %, one of two like steps may never become sure."""
    rough = replace(
        ROWS, smallest_effect=1.25, scatters=scatters((0.02, 0.3), (0.05, 0.6), (0.1, 0.1))
    )
    answers = [
        answer(Bayes(belief=rough), np.array([0.0, 0.25, 0.55, 0.53]), 0.02, seed=seed)[0].summary
        for seed in range(4)
    ]
    undecided = [each for each in answers if each.startswith("undecided")]
    assert undecided, answers
    for summary in undecided:
        told = re.search(r"; likely: (.+?\(\d+%\))(;|$)", summary)
        assert told, summary
        each = re.findall(r"(c\d) ([\d.]+) times slower than (c\d) \((\d+)%\)", told[1])
        assert [(after, before) for after, _, before, _ in each] == [("c1", "c0"), ("c2", "c1")]
        assert [float(size) for _, size, _, _ in each] == pytest.approx([1.28, 1.35], rel=0.06)
        assert all(50 <= int(chance) < 100 for *_, chance in each)
