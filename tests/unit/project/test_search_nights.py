"""Nights of a watch in simulation: which night names a step, and what a stored reference does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchbench.cell import Cell
from searchbench.findings import Said
from searchbench.kinds import Kind, Noise, Truth
from searchbench.machine import DAY, DRIFT, NIGHT_RUNS, Machine
from searchbench.methods import OURS_SMALLEST
from searchbench.nights import LAST_NIGHT, NEVER, OTHER, STEPS, delay_table, named_on, night_cells
from searchbench.play import Play, play
from searchbench.plays import Job
from searchbench.worlds import draw

STEP, A_DAY = next(iter(STEPS.items()))
QUIET = Kind(n=12, truth=Truth.NONE, noise=Noise.NIL, rate_cv_pct=0.0)


def looked(seed: int, said: Said, *, right: bool = False) -> Play:
    return Play(
        seed=seed, said=said, right=right, fair=right, one=right, every=right, covers=None,
        effect_holds=None, none_holds=None, named=1, also=0, confidence=None, runs=1, builds=1,
        steps=1, seconds=0.0,
    )  # fmt: skip


def cell_of(name: str) -> Cell:
    return next(each for each in night_cells() if each.group == name)


@given(nights=st.lists(st.integers(1, LAST_NIGHT + 2), max_size=20), wrong=st.booleans())
def test_a_step_is_named_on_the_night_of_its_first_alarm(nights: list[int], wrong: bool) -> None:
    """Made-up looks: each step is seen on a night of its own; some too late."""
    cell = cell_of(STEP)
    asked: list[int] = []

    def seen(night: int, seed: int) -> Play:
        if night < nights[seed]:
            return looked(seed, Said.ENDS if seed % 2 else Said.UNDECIDED)
        return looked(seed, Said.STEP, right=not wrong)

    def look(jobs: Sequence[Job]) -> Iterator[tuple[Job, list[Play]]]:
        for job in jobs:
            asked.append(job.cell.kind.night)
            yield job, [seen(job.cell.kind.night, seed) for seed in job.seeds]

    first = [seen(1, seed) for seed in range(len(nights))]
    quiet = {(cell_of("quiet"), OURS_SMALLEST): [looked(0, Said.ENDS)]}
    found = named_on({(cell, OURS_SMALLEST): first, **quiet}, look)
    assert set(found) == {STEP}
    late = sum(night > LAST_NIGHT for night in nights)
    assert found[STEP][NEVER] == late
    assert found[STEP][OTHER] == (len(nights) - late if wrong else 0)
    for night in range(1, LAST_NIGHT + 1):
        assert found[STEP][str(night)] == (0 if wrong else nights.count(night))
    assert len(asked) == sum(min(night, LAST_NIGHT) - 1 for night in nights)
    assert delay_table(found).splitlines()[2].startswith(f"| {STEP} | {found[STEP]['1']} |")


@pytest.mark.parametrize("night", [2, LAST_NIGHT])
def test_the_next_night_has_the_same_step_more_commits_and_other_runs(night: int) -> None:
    for seed in range(20):
        first, later = (draw(replace(A_DAY, night=at), seed) for at in (1, night))
        assert (later.steps, later.sigma) == (first.steps, first.sigma)
        assert later.n == 1 + 11 * night
        assert later.levels[:12].tolist() == first.levels.tolist()
        assert set(later.levels[12:]) == {first.levels[-1]}
        runs = [Machine(world).run(0) for world in (first, later)]
        assert runs[0] != runs[1]


def test_a_step_of_an_earlier_night_is_named() -> None:
    made = play(OURS_SMALLEST, replace(A_DAY, step_pct=30.0, night=3), 1)
    assert (made.said, made.right) == (Said.STEP, True)


def test_a_stored_reference_has_the_speed_of_the_night_before() -> None:
    drifting = Machine(draw(replace(QUIET, drifts=True, stored=True), 1))
    reference, tip = drifting.run(0), drifting.run(11)
    assert reference is not None
    assert tip is not None
    assert tip - reference == pytest.approx(DRIFT * (NIGHT_RUNS + 1))
    apart = []
    for seed in range(200):
        days = Machine(draw(replace(QUIET, sessions=True, stored=True), seed))
        reference, again, tip = days.run(0), days.run(0), days.run(11)
        assert reference == again  # of one day
        assert tip is not None
        assert reference is not None
        apart.append(tip - reference)
    assert fmean(apart) == pytest.approx(0, abs=0.01)
    assert np.std(apart) == pytest.approx(DAY * math.sqrt(2 / 3), rel=0.15)


def test_a_drifting_machine_is_an_alarm_only_without_a_fresh_reference() -> None:
    """Issue 25: with a reference none of the nights, without it all of them."""
    drifting = replace(A_DAY, truth=Truth.NONE, drifts=True)
    for seed in range(4):
        assert play(OURS_SMALLEST, drifting, seed).said is not Said.STEP
        assert play(OURS_SMALLEST, replace(drifting, stored=True), seed).said is Said.STEP
