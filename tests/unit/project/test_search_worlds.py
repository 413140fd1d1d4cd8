"""The benchmark's worlds are what their names say: rates, builds, modes, ramps, machines."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest

from dssearch.forecast import SimulatedRun
from searchbench.bounds import Proof, Side, chance_of_pairs
from searchbench.cell import LAST_SEED
from searchbench.families import DUETS, FAMILIES, LAWS
from searchbench.kinds import RAMP, Kind, Noise, Truth
from searchbench.machine import MACHINE, SECOND, Machine
from searchbench.methods import CLAIRVOYANT, OURS
from searchbench.play import play
from searchbench.scenarios import cells, long, only
from searchbench.worlds import draw

STEADY = (5.0, 5.0)


def runs(kind: Kind, at: int, count: int, turn: int = 0, seed: int = 1) -> list[SimulatedRun]:
    machine = Machine(draw(kind, seed))
    made = [machine.measure(at, turn) for _ in range(count)]
    return [each for each in made if each is not None]


@pytest.mark.parametrize("pct", [13.0, 26.0])
def test_a_rate_has_noise_of_its_own_and_follows_the_level(pct: float) -> None:
    kind = Kind(step_pct=10.0, cv_pct=STEADY, rate_cv_pct=pct)
    made = runs(kind, kind.n - 1, 2000)
    rates, costs = [each.rate for each in made], [each.cost for each in made]
    assert fmean(rates) == pytest.approx(-math.log(1.1), abs=0.03)
    assert stdev(rates) == pytest.approx(pct / 100, rel=0.1)
    assert stdev(costs) == pytest.approx(0.05, rel=0.1)
    assert abs(float(np.corrcoef(rates, costs)[0, 1])) < 0.1


def test_a_rate_may_wander_while_the_cost_does_not() -> None:
    steady, wandering = (
        runs(Kind(cv_pct=STEADY, rate_wanders=wanders), 0, 120) for wanders in (False, True)
    )
    apart = [other.rate - one.rate for one, other in zip(steady, wandering, strict=True)]
    assert [max(apart), min(apart)] == pytest.approx([0.15, -0.15], abs=0.001)
    assert [each.cost for each in steady] == [each.cost for each in wandering]


def test_without_noise_the_rate_has_none_either() -> None:
    (one,) = runs(Kind(noise=Noise.NIL), 0, 1)
    assert (one.cost, one.rate) == (0.0, 0.0)


def test_a_build_keeps_its_own_offset_whatever_its_runs() -> None:
    world = draw(Kind(truth=Truth.NONE, scatter_pct=3.0, noise=Noise.NIL), 4)
    levels = [world.built(at) for at in range(world.n)]
    assert stdev(levels) == pytest.approx(0.03, rel=0.25)
    machine = Machine(world)
    assert machine.run(7) == machine.run(7) == levels[7]
    assert not world.levels.any()


def test_slow_runs_are_a_second_mode() -> None:
    kind = Kind(truth=Truth.NONE, cv_pct=(1.0, 1.0), slow_runs=True)
    slow = [each.cost > 0.1 for each in runs(kind, 0, 2000)]
    assert fmean(slow) == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("seed", range(20))
def test_a_ramp_rises_over_ten_neighbours(seed: int) -> None:
    world = draw(Kind(truth=Truth.RAMP, step_pct=50.0), seed)
    rises = np.flatnonzero(np.diff(world.levels) > 0) + 1
    assert tuple(rises) == world.steps
    assert (len(rises), rises[-1] - rises[0]) == (RAMP, RAMP - 1)
    assert world.levels[-1] == pytest.approx(math.log(1.5))


def test_there_and_back_ends_where_it_began_or_where_it_was_told() -> None:
    back = draw(Kind(truth=Truth.BACK, step_pct=30.0), 3)
    over = draw(Kind(truth=Truth.BACK, step_pct=-20.0, then_pct=30.0), 3)
    assert back.levels[-1] == pytest.approx(0.0)
    assert back.levels.max() == pytest.approx(math.log(1.3))
    assert over.levels.min() == pytest.approx(math.log(0.8))
    assert over.levels[-1] == pytest.approx(math.log(0.8 * 1.3))


def test_a_turn_is_all_on_one_machine() -> None:
    kind = Kind(truth=Truth.NONE, cv_pct=STEADY, second_machine=True)
    slow, fast = (runs(kind, 0, 1000, turn) for turn in (0, 1))
    assert {each.machine.id for each in slow} == {MACHINE.id}
    assert {each.machine.id for each in fast} == {SECOND.id}
    faster = fmean(each.cost for each in slow) - fmean(each.cost for each in fast)
    assert faster == pytest.approx(math.log(1.7), abs=0.02)
    assert stdev(each.cost for each in fast) == pytest.approx(0.08, rel=0.1)


def test_a_machine_has_days_a_drift_and_one_speed_a_turn() -> None:
    still = Kind(truth=Truth.NONE, noise=Noise.NIL)
    days = runs(replace(still, sessions=True), 0, 90)
    assert {each.session for each in days} == {0, 1, 2}
    assert len({each.cost for each in days}) == 3
    drifting = runs(replace(still, drifts=True), 0, 90)
    assert drifting[-1].cost - drifting[0].cost == pytest.approx(0.089)
    kind = replace(still, duets=True)
    turns = [{each.cost for each in runs(kind, 0, 2, turn)} for turn in range(200)]
    assert all(len(each) == 1 for each in turns)
    assert stdev(np.diff([each.pop() for each in turns])) == pytest.approx(0.03, rel=0.2)


@pytest.mark.parametrize("law", LAWS)
def test_each_law_is_the_same_in_duets_but_for_the_speed_of_the_turn(law: str) -> None:
    speeds = [run.cost for turn in range(9) for run in runs(replace(STILL, duets=True), 0, 1, turn)]
    machines = [Machine(draw(FAMILIES[name][0], 1)) for name in (law, law + DUETS)]
    for turn, speed in enumerate(speeds):
        for at in (3, 40):
            alone, in_duet = (machine.measure(at, turn) for machine in machines)
            assert alone is not None
            assert in_duet is not None
            assert in_duet.cost == pytest.approx(alone.cost + speed)
            assert (alone.at_least is None) == (in_duet.at_least is None)
            one, other = (replace(e, cost=0.0, rate=0.0, at_least=None) for e in (alone, in_duet))
            assert one == other


def test_a_culprit_is_proved_by_what_two_runs_at_once_differ_by() -> None:
    alike, apart = Side(), Side()
    for value in (0.0, 0.02, -0.02, 0.01) * 5:
        alike.add(value)
        apart.add(0.1 + value)
    assert chance_of_pairs(alike, 127) < 1 / 127
    assert chance_of_pairs(apart, 127) > 0.999
    still, walking = (
        fmean(play(CLAIRVOYANT, Kind(d=2.0, duets=duets), LAST_SEED + at).runs for at in range(8))
        for duets in (False, True)
    )
    assert still <= walking <= 1.5 * still


STILL = Kind(truth=Truth.NONE, noise=Noise.NIL)


def test_a_start_is_slow_for_one_turn_or_for_all_runs() -> None:
    by_turn = replace(STILL, start_pct=(6.0, 15.0))
    machine = Machine(draw(by_turn, 2))
    turns = [machine.measure(3, turn) for turn in range(300)]
    costs = [each.cost for each in turns if each is not None]
    assert 0.06 < math.expm1(max(costs)) < 0.15
    assert set(costs) == {0.0, max(costs)}
    assert fmean(cost > 0 for cost in costs) == pytest.approx(0.3, abs=0.08)
    assert len({each.start for each in turns if each is not None}) == 300
    again = Machine(draw(by_turn, 2))
    assert [again.run(at) for at in (3, 3)] == costs[:2]

    machine = Machine(draw(replace(by_turn, one_start=True, n=300), 2))
    levels = [{machine.run(at) for _ in range(3)} for at in range(300)]
    assert all(len(each) == 1 for each in levels)
    assert fmean(each != {0.0} for each in levels) == pytest.approx(0.3, abs=0.08)


def test_builds_lie_on_two_layouts() -> None:
    world = draw(replace(STILL, layout_pct=(2.0, 4.0)), 3)
    faster, slower = sorted({world.built(at) for at in range(world.n)})
    assert faster == -slower
    assert 0.02 <= math.expm1(slower) <= 0.04


def test_a_step_may_be_in_one_layout_only() -> None:
    world = draw(Kind(step_pct=10.0, one_layout=True), 3)
    (step,) = world.steps
    assert {world.built(at) for at in range(step)} == {0.0}
    after = [world.built(at) for at in range(step, world.n)]
    assert sorted(set(after)) == pytest.approx([0.0, math.log(1.1)])
    assert 0.3 < fmean(level > 0 for level in after) < 0.7


@pytest.mark.parametrize("seed", range(20))
def test_changes_may_be_next_to_each_other(seed: int) -> None:
    kind = Kind(truth=Truth.BACK, d=4.0, apart=(1, 2), then_share=0.7, either_way=True)
    world = draw(kind, seed)
    first, last = world.steps
    assert last - first in {1, 2}
    assert last < world.n
    assert world.levels[-1] == pytest.approx(0.3 * world.jump(first))


def test_half_of_the_steps_go_the_other_way() -> None:
    ways = [draw(Kind(either_way=True), seed).levels[-1] > 0 for seed in range(200)]
    assert 0.4 < fmean(ways) < 0.6


def test_values_are_read_in_steps() -> None:
    for metric, step in (("start-time", 0.1), ("start-cpu", 0.01)):
        made = runs(Kind(metric=metric, cv_pct=STEADY), 0, 100)
        read = [each.value / step for each in made if each.value is not None]
        assert all(value % 1 == pytest.approx(0.5) for value in read)
        assert len(set(read)) < len(read) == 100
        assert {each.quantum for each in made} == {step}


def test_runs_fail_at_random_or_in_spells() -> None:
    for spells in (False, True):
        world = draw(replace(STILL, fails_pct=(20.0, 20.0), spells=spells), 3)
        assert world.fails is not None
        flaky = np.flatnonzero(world.fails)
        assert len(flaky) == pytest.approx(world.n / 3, abs=15)
        machine = Machine(world, 10**5)
        failed = [bool(each.failed) for _ in range(5000)
                  if (each := machine.measure(int(flaky[0]), 0)) is not None]  # fmt: skip
        assert fmean(failed) == pytest.approx(0.2, abs=0.03)
        in_a_row = sum(map(all, zip(failed, failed[1:], failed[2:], strict=False))) / len(failed)
        assert in_a_row == pytest.approx(0.2 * (2 / 3) ** 2 if spells else 0.2**3, abs=0.02)
        steady = int(np.flatnonzero(world.fails == 0)[0])
        assert not any(each.failed for each in runs(world.kind, steady, 200, seed=3))


def test_the_slow_side_takes_too_long_more_often() -> None:
    kind = Kind(d=2.0, cv_pct=STEADY, censored_pct=(20.0, 20.0))
    fast, slow = (fmean(bool(e.failed) for e in runs(kind, at, 2000)) for at in (0, kind.n - 1))
    assert slow == pytest.approx(0.2, abs=0.03)
    assert fast < 0.01
    limit = draw(kind, 1).limit
    assert {each.at_least for each in runs(kind, kind.n - 1, 200)} == {None, limit}


def test_what_a_run_that_hangs_costs_at_least_is_true() -> None:
    world = draw(replace(STILL, fails_pct=(30.0, 30.0)), 1)
    assert world.fails is not None
    flaky = int(np.flatnonzero(world.fails)[0])
    failed = [each for each in runs(world.kind, flaky, 100) if each.failed]
    assert all(-math.log(2) <= (each.at_least or 0.0) <= each.cost for each in failed)


def test_counts_have_a_few_strays_and_no_noise() -> None:
    for before, after in ((0.0, 2.0), (2.0, 0.0), (37.0, 54.0)):
        kind = Kind(metric="fsyncs", counts=(before, after))
        for at, count in ((0, before), (kind.n - 1, after)):
            read = [each.value - count for each in runs(kind, at, 200) if each.value is not None]
            assert len(read) == 200
            assert min(read) == pytest.approx(0.0)
            assert 0.0 < max(read) < 0.2


def test_a_search_is_shown_failed_runs_and_the_metric_that_decides() -> None:
    """Through the planner, as in the lab."""
    kind = Kind(n=8, step_pct=100.0, metric="start-time", fails_pct=(30.0, 30.0), budget=200)
    assert play(OURS, kind, 4).one


def test_the_runs_of_a_candidate_are_the_same_whatever_ran_before() -> None:
    one, other = (Machine(draw(Kind(), 9)) for _ in range(2))
    other.run(3)
    assert one.run(5) == other.run(5)


def test_every_line_of_the_report_has_its_own_words() -> None:
    labels = [(cell.group, cell.label) for cell in cells()]
    assert len(set(labels)) == len(labels)


def test_one_table_or_line_can_be_played_alone() -> None:
    assert {cell.kind.second_machine for cell in only(cells(), ["TWO MACHINES, n"])} == {
        True,
        False,
    }
    assert len(only(cells(), ["rate wanders"])) == 1
    assert not only(cells(), ["nothing of the kind"])


def test_the_long_comparison_is_of_the_search_alone() -> None:
    assert len({cell.kind for cell in long()}) == len(long()) == 3
    assert {cell.methods for cell in long()} == {("dsbisect",)}


@pytest.mark.few(1)
@pytest.mark.parametrize(("d", "known"), [(1.0, 100.0), (2.0, 32.1), (4.0, 14.0)])
def test_proving_a_culprit_takes_what_an_independent_check_found(d: float, known: float) -> None:
    made = [play(CLAIRVOYANT, Kind(d=d), LAST_SEED + seed) for seed in range(12)]
    assert fmean(each.runs for each in made) == pytest.approx(known, rel=0.15)


def test_equal_neighbours_prove_nothing() -> None:
    proof = Proof(places=127)
    for value in (0.0, 0.02, -0.02, 0.01) * 5:
        proof.before.add(value)
        proof.after.add(value)
    assert proof.chance < 1 / 127
