"""What counts as a right answer in the benchmark's worlds, and what its targets make of it."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from dsharness.model import Boundary
from searchbench.cell import Cell
from searchbench.comparison import differences, family_differences, read_old
from searchbench.driver import read
from searchbench.families import DUETS, EFFICIENCY, FAMILIES, MOST_KINDS, family_cells
from searchbench.findings import Finding, Said, step_at
from searchbench.honesty import RUNS_BEFORE, honesty, honesty_report, missed
from searchbench.kinds import Kind, Truth
from searchbench.methods import CLAIRVOYANT, OURS
from searchbench.peer_scenarios import MAIN
from searchbench.play import (
    Play,
    Wrong,
    covers,
    effect_holds,
    fair,
    names_every,
    none_holds,
    right,
    wrong,
)
from searchbench.table import world_rows
from searchbench.target import Target
from searchbench.targets import machines, targets
from searchbench.world_scenarios import MACHINES
from searchbench.worlds import World, draw

RAMP = draw(Kind(truth=Truth.RAMP, step_pct=50.0), 1)
BACK = draw(Kind(truth=Truth.BACK, step_pct=30.0), 1)
TWO = draw(Kind(truth=Truth.TWO, d=4.0), 1)
STEP = draw(Kind(step_pct=10.0), 1)
NONE = draw(Kind(truth=Truth.NONE, scatter_pct=2.0), 1)


def around(world: World, before: int, after: int) -> frozenset[int]:
    return frozenset(range(world.steps[0] - before, world.steps[-1] + 1 + after))


@pytest.mark.parametrize(
    ("world", "finding", "expected"),
    [
        (RAMP, Finding(said=Said.RAMP, suspects=frozenset(RAMP.steps)), True),
        (RAMP, Finding(said=Said.RAMP, suspects=around(RAMP, 3, 3)), True),
        (RAMP, Finding(said=Said.RAMP, suspects=around(RAMP, 8, 8)), False),
        (RAMP, Finding(said=Said.RAMP, suspects=around(RAMP, 20, -10)), False),
        (RAMP, Finding(said=Said.RAMP, suspects=frozenset(RAMP.steps[:3])), False),
        (RAMP, Finding(said=Said.RAMP), False),
        (RAMP, step_at(RAMP.steps[4]), False),
        (BACK, step_at(BACK.steps[1]), True),
        (BACK, Finding(said=Said.ENDS), True),
        (BACK, Finding(said=Said.NONE), False),
        (NONE, Finding(said=Said.BUILDS), True),
        (NONE, step_at(5), False),
        (STEP, Finding(said=Said.BUILDS), False),
    ],
)
def test_what_is_right_in_other_worlds(world: World, finding: Finding, expected: object) -> None:
    assert right(world, finding) is fair(world, finding) is expected


@pytest.mark.parametrize(
    ("world", "suspects", "honest"),
    [
        (STEP, around(STEP, 2, 2), True),
        (STEP, None, True),
        (STEP, frozenset({STEP.steps[0] + 1}), False),
        (RAMP, around(RAMP, 0, -5), True),
        (RAMP, around(RAMP, 0, -6), False),
        (BACK, frozenset({BACK.steps[1]}), True),
        (NONE, frozenset({7}), True),
    ],
)
def test_cannot_tell_is_honest_unless_it_excludes_the_step(
    world: World, suspects: frozenset[int] | None, honest: object
) -> None:
    finding = Finding(said=Said.UNDECIDED, suspects=suspects)
    assert fair(world, finding) is honest
    assert right(world, finding) is False


def test_what_was_stopped_is_not_honest() -> None:
    assert not fair(STEP, Finding(said=Said.STOPPED))


def test_one_commit_of_a_ramp_does_not_hold_it() -> None:
    assert covers(RAMP, step_at(RAMP.steps[0])) is False


def test_two_steps_are_both_named_or_not() -> None:
    one, other = (frozenset({step}) for step in TWO.steps)
    both = replace(step_at(*one), every=(one, other))
    assert names_every(TWO, both)
    assert not names_every(TWO, replace(both, every=(one,)))
    assert not names_every(TWO, replace(both, every=(one, other, frozenset({0}))))
    assert not names_every(TWO, replace(both, every=(one, other | one)))


def test_no_difference_hides_no_more_than_it_says() -> None:
    hidden = [Finding(said=Said.BUILDS, visible=math.log(size)) for size in (1.09, 1.11)]
    assert [none_holds(STEP, each) for each in hidden] == [False, True]
    assert [wrong(STEP, each) for each in hidden] == [Wrong.NONE, Wrong.NO]
    assert none_holds(NONE, Finding(said=Said.NONE, visible=0.0)) is True
    assert none_holds(BACK, Finding(said=Said.ENDS)) is True
    assert none_holds(STEP, Finding(said=Said.UNDECIDED)) is None


def test_of_what_was_measured_inside_no_difference_says_more() -> None:
    """Where every candidate was measured, a change that was taken back is one."""
    inside = [Finding(said=Said.NONE, visible=math.log(size)) for size in (1.29, 1.31)]
    assert [none_holds(BACK, each) for each in inside] == [False, True]


def test_a_step_in_one_layout_is_half_as_large_in_the_mean() -> None:
    world = draw(Kind(step_pct=10.0, one_layout=True), 1)
    half = math.log(1.1) / 2
    said = [Finding(said=Said.ENDS, visible=visible) for visible in (half - 0.001, half + 0.001)]
    assert [wrong(world, each) for each in said] == [Wrong.NONE, Wrong.NO]
    assert effect_holds(world, replace(step_at(*world.steps), effect=(0.0, 0.001))) is None


SLOWER = replace(step_at(STEP.steps[0]), way=1)


@pytest.mark.parametrize(
    ("world", "finding", "expected"),
    [
        (STEP, SLOWER, Wrong.NO),
        (STEP, replace(SLOWER, way=-1), Wrong.WAY),
        (STEP, replace(SLOWER, way=0), Wrong.NO),
        (STEP, replace(SLOWER, named=frozenset({STEP.steps[0] + 1})), Wrong.PLACE),
        (STEP, Finding(said=Said.RAMP, suspects=around(STEP, 3, 3)), Wrong.RAMP),
        (STEP, Finding(said=Said.UNDECIDED), Wrong.NO),
        (STEP, Finding(said=Said.STOPPED), Wrong.NO),
        (NONE, SLOWER, Wrong.MADE_UP),
        (RAMP, replace(SLOWER, named=frozenset({RAMP.steps[0]})), Wrong.PLACE),
        (RAMP, Finding(said=Said.RAMP, suspects=frozenset(RAMP.steps)), Wrong.NO),
        (BACK, replace(step_at(BACK.steps[1]), way=-1), Wrong.NO),
        (BACK, replace(step_at(BACK.steps[1]), way=1), Wrong.WAY),
    ],
)
def test_what_is_wrong(world: World, finding: Finding, expected: Wrong) -> None:
    assert wrong(world, finding) is expected


def test_of_changes_next_to_each_other_both_may_be_named() -> None:
    kind = Kind(truth=Truth.BACK, d=4.0, apart=(2, 2), then_share=0.7)
    world = draw(kind, 1)
    first, last = world.steps
    sizes = [(world.jump(first), 1), (world.jump(last), -1), (0.3 * world.jump(first), 1)]
    for size, way in sizes:
        both = replace(step_at(first, first + 1, last), way=way, effect=(size - 0.01, size + 0.01))
        assert wrong(world, both) is Wrong.NO
        assert effect_holds(world, both) is True
    assert wrong(world, step_at(first - 1)) is Wrong.PLACE


def test_two_that_are_named_together_are_true_and_not_the_step_itself() -> None:
    step = STEP.steps[0]
    both = replace(step_at(step - 1, step), way=1, effect=(0.09, 0.1))
    assert wrong(STEP, both) is Wrong.NO
    assert effect_holds(STEP, both) is True
    assert not right(STEP, both)
    assert wrong(STEP, step_at(step - 2, step - 1)) is Wrong.PLACE


def test_where_runs_fail_those_candidates_may_be_named_as_well() -> None:
    world = replace(STEP, fails=np.zeros(STEP.n))
    step = world.steps[0]
    assert world.fails is not None
    world.fails[step - 1] = world.fails[step - 2] = 0.2
    assert wrong(world, replace(step_at(step - 2, step - 1, step), way=1)) is Wrong.NO
    assert right(world, step_at(step - 2, step - 1, step))
    assert not right(world, step_at(step, step + 1))
    assert wrong(world, replace(step_at(step - 2, step - 1), way=1)) is Wrong.PLACE


def test_the_interval_of_an_effect_holds_the_size_of_what_is_rightly_named() -> None:
    named = replace(step_at(STEP.steps[0]), effect=(math.log(1.05), math.log(1.2)))
    assert effect_holds(STEP, named) is True
    assert effect_holds(STEP, replace(named, effect=(0.0, math.log(1.09)))) is False
    assert effect_holds(STEP, replace(named, named=frozenset({STEP.steps[0] + 1}))) is None


def boundary(**facts: object) -> Boundary:
    usual = {
        "series_id": "", "workload_id": "", "settings_id": "", "before": None, "after": None,
        "found": False, "direction": "unknown", "summary": "",
    }  # fmt: skip
    return Boundary.model_validate({**usual, **facts})


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, Said.UNDECIDED),
        ({"direction": "none"}, Said.NONE),
        ({"direction": "none", "shape": "ends"}, Said.ENDS),
        ({"direction": "none", "shape": "builds"}, Said.BUILDS),
        ({"shape": "builds"}, Said.UNDECIDED),
        ({"direction": "slower", "shape": "ramp", "suspects": ["c4", "c5"]}, Said.RAMP),
        ({"direction": "slower", "found": True, "suspects": ["c4"]}, Said.STEP),
    ],
)
def test_a_boundary_is_read_as_what_it_claims(facts: dict[str, object], said: Said) -> None:
    assert read(boundary(**facts)).said is said


def test_the_effect_of_a_faster_step_is_below_zero() -> None:
    found = read(boundary(found=True, direction="faster", effect_interval=(1.1, 1.3)))
    assert found.way == -1
    assert found.effect == pytest.approx((-math.log(1.3), -math.log(1.1)))


def made(*, fair: bool = True, said: Said = Said.STEP, runs: int = 10, seed: int = 0) -> Play:
    return Play(
        seed=seed, said=said, right=fair, fair=fair, one=fair, every=fair, covers=fair,
        effect_holds=None, none_holds=None, named=1, also=0, confidence=0.96, runs=runs, builds=9,
        steps=2, seconds=0.01,
    )  # fmt: skip


def by_name(found: list[Target]) -> dict[str, Target]:
    return {each.what.rpartition(": ")[2]: each for each in found}


NONE_SAID = replace(made(said=Said.ENDS), named=0, none_holds=True)


def test_what_is_stated_must_be_true_as_often() -> None:
    cell = family_cells()[0]
    named = replace(made(), effect_holds=True)
    held = [*[named] * 38, *[replace(named, effect_holds=False)] * 2]
    plays = [*held, *[NONE_SAID] * 40]
    assert [each.met for each in honesty({(cell, OURS): plays})] == [True] * 5
    assert missed(plays) == []
    wrongs = [replace(made(fair=False), wrong=Wrong.PLACE, effect_holds=False)] * 12
    hidden = [replace(NONE_SAID, none_holds=False, wrong=Wrong.NONE)] * 8
    worse = [*held, *wrongs, *[NONE_SAID] * 40, *hidden]
    assert [each.met for each in honesty({(cell, OURS): worse})] == [False] * 4 + [True]
    assert missed(worse) == ["named", "none", "interval too narrow", "wrong"]
    assert missed([named] * 400) == ["interval too wide"]


def test_intervals_of_counts_hide_none_of_values() -> None:
    cells = {cell.kind.counts is not None: cell for cell in family_cells()}
    plays = {
        (cells[counted], OURS): [replace(made(), effect_holds=not counted)] * 20
        for counted in (False, True)
    }
    held = [each.measured for each in honesty(plays) if "intervals" in each.what]
    assert [each.partition("%")[0] for each in held] == ["100.0", "0.0"]


def test_few_histories_miss_a_target_only_where_chance_does_not_explain_it() -> None:
    assert missed([*[NONE_SAID] * 29, replace(NONE_SAID, none_holds=False, wrong=Wrong.NONE)]) == []


def test_runs_are_held_to_those_of_the_clairvoyant() -> None:
    (cell, *_) = (cell for cell in family_cells() if cell.group in EFFICIENCY)
    plays = {(cell, OURS): [made(runs=31)], (cell, CLAIRVOYANT): [made(runs=20)]}
    (found,) = honesty(plays)
    assert not found.met
    assert "1.55 times" in found.measured


@pytest.mark.parametrize(("more", "met"), [(1.2, True), (1.3, False)])
def test_runs_are_held_to_those_of_before(more: float, met: object) -> None:
    before = json.loads(RUNS_BEFORE.read_text())
    cells = {cell.group: cell for cell in family_cells() if cell.group in before}
    assert len(cells) == len(before), "a family was renamed"
    plays = {(cell, OURS): [made(runs=round(more * before[name]))] for name, cell in cells.items()}
    found = by_name(list(honesty(plays)))
    assert found["median runs of a family"].met is met


def test_every_family_has_its_row() -> None:
    plays = {(cell, method): [made()] * 2 for cell in family_cells() for method in cell.methods}
    text = honesty_report(plays, "make bench-search", 10)
    laws = {family.removesuffix(DUETS) for family in (*FAMILIES, *EFFICIENCY)}
    assert all(f"| {law} |" in text for law in laws)


def test_worlds_of_families_have_nothing_in_common() -> None:
    cells = [*family_cells(), *family_cells(tuning=True)]
    seeds = [seed for cell in cells for seed in cell.seeds(MOST_KINDS)]
    assert len(set(seeds)) == len(seeds)
    assert len({(cell.group, cell.label) for cell in cells}) * 2 == len(cells)


@pytest.mark.parametrize(("runs", "met"), [(42, True), (43, False)])
def test_runs_are_held_to_what_they_were(runs: int, met: object) -> None:
    cell = Cell(group=MAIN, kind=Kind(d=2.0), methods=(OURS,))
    (found,) = (each for each in targets({(cell, OURS): [made(runs=runs)]}, None)
                if each.what.endswith("runs"))  # fmt: skip
    assert found.met is met


def test_two_machines_are_held_to_the_better_one() -> None:
    alone = Cell(group=MACHINES, kind=Kind(step_pct=10.0), methods=(OURS,))
    both = replace(alone, kind=Kind(step_pct=10.0, second_machine=True))
    plays = {(alone, OURS): [made(runs=100)], (both, OURS): [made(runs=201)]}
    (found,) = (each for each in machines(plays) if "better one" in each.what)
    assert not found.met


def test_what_was_not_played_is_no_target() -> None:
    cell = Cell(group=MAIN, kind=Kind(d=2.0), methods=(OURS,))
    found = [each.what for each in targets({(cell, OURS): [made()]}, None)]
    assert found
    assert not any("d = 1:" in each or "machines" in each for each in found)


def test_a_row_shows_what_was_stated_and_what_was_true() -> None:
    ((name, *row),) = world_rows({OURS: [made(), made(), made(fair=False)]})
    assert name == OURS
    assert row[2].startswith("0.960: 0.667")
    assert row[-1] == "step 1.00"


def test_two_variants_are_compared_history_by_history(tmp_path: Path) -> None:
    cell = Cell(group=MAIN, kind=Kind(), methods=(OURS,))
    before = [made(runs=10 + seed, seed=seed) for seed in range(4)]
    stored = {"kind": asdict(cell.kind), "search": OURS, "plays": [asdict(e) for e in before]}
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"cells": [stored]}))
    after = [made(runs=9 + seed, seed=seed) for seed in range(1, 6)]
    (row,) = differences({(cell, OURS): after}, read_old(path))
    assert row[2:5] == ["3", "12.0 to 11.0", "+1.00 ± 0.00"]


def test_two_variants_are_compared_family_by_family(tmp_path: Path) -> None:
    """Also with plays of a time when kinds had fewer fields."""
    cells = family_cells()[:2]
    kinds = [asdict(cell.kind) for cell in cells]
    for kind in kinds:
        del kind["odd_pct"]
    before = [
        made(seed=0), made(seed=1, said=Said.UNDECIDED, fair=False),
        replace(made(seed=2, fair=False), wrong=Wrong.PLACE), made(seed=3),
    ]  # fmt: skip
    stored = [{"kind": k, "search": OURS, "plays": [asdict(e) for e in before]} for k in kinds]
    path = tmp_path / "before.json"
    path.write_text(json.dumps({"cells": stored}))
    after = [made(seed=seed, runs=8) for seed in range(4)]
    (row,) = family_differences({(cell, OURS): after for cell in cells}, read_old(path))
    assert row[2:6] == ["8", "10 to 8", "10.0 to 8.0", "+2.00 ± 0.00"]
    assert [each.partition(" ")[0] for each in row[6:]] == ["+50.00", "-25.00", "-25.00", "+50.00"]
