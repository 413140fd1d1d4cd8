"""What a search will take, from the noise of a pilot."""

from __future__ import annotations

import math
import random

import pytest
from typer.testing import CliRunner
from worlds import World, sample_of

from dsbisect.cli.root import app
from dsbisect.search_options import SearchOptions
from dsharness.errors import InconclusiveError, UsageError
from dsharness.measure.metrics import COST
from dsharness.model import LdcltWorkload, Sample
from dssearch.bayes.bayes_search import Bayes
from dssearch.bayes.prior import Costs
from dssearch.forecast import (
    LEAST_REHEARSALS,
    ForecastRequest,
    check,
    forecast,
    refuse_the_invisible,
    refuse_without_chance,
    rehearse,
    smallest_visible,
)
from dssearch.pilot_noise import Noise, RunNoise, noise_of

DRIVEN = LdcltWorkload(id="w", title="w", users=10)


def wanted(**changes):
    facts = {
        "candidates": 16, "drop_pct": 50.0, "most_runs": 500, "most_hours": None, "level": 0.95
    }  # fmt: skip
    return ForecastRequest(**{**facts, **changes})


def test_a_pilot_tells_the_noise_with_its_doubt():
    world = World({"a": 1.0}, noise=0.05)
    noise = noise_of([world.sample("a", turn) for turn in range(200)])
    assert noise.size == pytest.approx(0.05, rel=0.2)
    assert noise.low < noise.size < noise.high
    assert noise.runs == 200


def test_a_pilot_of_failed_runs_is_no_pilot():
    failed = [sample_of("a", 1.0, turn, invalid=("refused",)) for turn in range(9)]
    with pytest.raises(InconclusiveError, match="the pilot has 0; refused: refused"):
        noise_of(failed)


@pytest.fixture(scope="module")
def told():
    with pytest.MonkeyPatch.context() as patch:  # a plain step needs no more to be seen
        patch.setattr("dssearch.forecast.REHEARSALS", LEAST_REHEARSALS)
        return forecast(Noise.named(3), wanted(), Bayes(), Costs(run_s=10, start_s=0, prepare_s=90))


@pytest.mark.whole
def test_a_plain_step_is_found_in_few_runs(told):
    assert told.right >= 0.9
    assert 5 <= told.builds <= 7
    assert told.runs < 20
    assert told.hours == pytest.approx((told.runs * 10 + told.builds * 90) / 3600, rel=0.05)
    refuse_without_chance(told, wanted(), 1.0)


def test_what_takes_too_long_is_refused_with_what_would_help(told):
    with pytest.raises(InconclusiveError, match="hours are more than") as caught:
        refuse_without_chance(told, wanted(most_hours=0.01), 1.0)
    assert "more hours" in str(caught.value)


@pytest.mark.parametrize(("noise", "drop", "help_"), [(20, 5.5, "runs of"), (1, 0.6, "look for")])
def test_what_cannot_be_seen_is_refused_before_any_rehearsal(noise, drop, help_):
    with pytest.raises(InconclusiveError, match="too small to be seen") as caught:
        refuse_the_invisible(Noise.named(noise), wanted(drop_pct=drop), 1.0)
    assert help_ in str(caught.value)


def test_more_runs_see_smaller_steps_down_to_what_is_looked_for():
    few, many, most = (smallest_visible(0.1, runs) for runs in (20, 200, 10**6))
    assert few > many >= most > 0


@pytest.mark.parametrize("changes", [{"drop_pct": 0}, {"candidates": 1}])
def test_wrong_words(changes):
    with pytest.raises(UsageError):
        check(wanted(**changes))
    with pytest.raises(UsageError):
        Noise.named(-1)


@pytest.mark.parametrize(
    "words", [{"level": 1.0}, {"level": 0.2}, {"max_runs": 0}, {"max_hours": -1.0}]
)
def test_a_manner_that_cannot_be_is_refused(words):
    with pytest.raises(UsageError):
        SearchOptions(**words)


def test_a_manner_becomes_a_search():
    search = SearchOptions(level=0.99, max_builds=5, max_hours=2).search(DRIVEN, prepare_s=60)
    assert isinstance(search, Bayes)
    assert search.certainty.level == 0.99
    assert (search.budget.builds, search.budget.seconds) == (5, 7200)
    assert search.costs.first_s("a") > 60


@pytest.mark.whole
def test_a_rehearsal_is_the_same_each_time():
    one, other = (
        rehearse(Bayes(), 16, math.log(1.5), RunNoise(cost=0.05), seed=3) for _ in range(2)
    )
    assert one == other
    assert one.right


def test_each_rehearsal_draws_its_noise_from_what_the_pilot_leaves_possible():
    """So that nine in ten searches on such machines stay within "at most"."""
    few = Noise.estimated(0.05, freedom=9, runs=10)
    many = Noise.estimated(0.05, freedom=999, runs=1000)
    drawn = [sorted(noise.drawn(seed).cost for seed in range(200)) for noise in (few, many)]
    assert drawn[0][10] < 0.042
    assert drawn[0][-10] > 0.066
    assert 0.047 < drawn[1][0] < drawn[1][-1] < 0.053
    assert {Noise.named(5).drawn(seed).cost for seed in range(3)} == {Noise.named(5).size}


class SharedSpeed(World):
    """Of one turn all runs have the same speed of the machine; it wanders."""

    def sample(self, row: str, turn: int) -> Sample:
        walk = random.Random("speed")
        speed = sum(walk.gauss(0, 0.1) for _ in range(turn + 1))
        taken = super().sample(row, turn)
        cost = COST.slowness(taken) or 0.0
        return sample_of(row, cost * math.exp(speed), turn)


def test_a_pilot_of_pairs_tells_a_run_s_own_noise_from_the_machine_s_speed() -> None:
    """Duets measure at 2 to 3 %, where single runs vary by 10: a plan of these was of no search."""
    world = SharedSpeed({"a": 1.0, "b": 1.0}, noise=0.03)
    pairs = [world.sample(name, turn) for turn in range(60) for name in "ab"]
    noise = noise_of(pairs)
    assert noise.size == pytest.approx(0.03, rel=0.25)
    assert noise.pace == pytest.approx(0.1, rel=0.35)
    assert noise.freedom == 60
    alone = noise_of([each for each in pairs if each.candidate_id == "a"])
    assert alone.size > 0.1
    assert noise.drawn(3).pace == noise.pace


def test_a_rehearsal_in_duets_has_the_machine_s_speed_of_each_turn() -> None:
    """Without it 61 runs were foreseen and 81 taken; two of a turn share it, so it costs little."""
    paired = Bayes(costs=Costs(paired=True))
    found = [
        rehearse(search, 16, math.log(1.4), RunNoise(cost=0.03, pace=0.2), seed=1)
        for search in (paired, Bayes())
    ]
    assert found[0].right
    assert found[0].runs < found[1].runs


@pytest.mark.parametrize("cpus", [1, 2])
def test_a_plan_is_of_the_way_in_which_this_machine_measures(
    monkeypatch: pytest.MonkeyPatch, cpus: int
) -> None:
    """It was always of single runs, and most machines measure in duets."""
    asked: list[Bayes] = []

    def seen(*given: object) -> None:
        asked.extend(each for each in given if isinstance(each, Bayes))
        raise UsageError("enough")

    monkeypatch.setattr("dssearch.forecast.forecast", seen)
    monkeypatch.setattr("dslab.lab_conditions.available_cpus", lambda: tuple(range(cpus)))
    CliRunner().invoke(app, ["bisect", "plan", "--noise-pct", "5", "--smallest", "20"])
    (search,) = asked
    assert search.costs.paired is (cpus > 1)


def test_a_rehearsal_has_the_pairs_of_cost_and_rate_of_the_pilot():
    world = World({"a": 1.0}, noise=0.05)
    noise = noise_of([world.sample("a", turn) for turn in range(60)])
    assert noise.rate_slope == pytest.approx(1.0, abs=0.4)
    assert noise.drawn(1).rate_slope == noise.rate_slope
