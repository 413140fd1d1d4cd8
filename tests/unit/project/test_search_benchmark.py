"""The benchmark of the search measures what it says; the search itself is tested elsewhere."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from searchbench.cell import LAST_SEED, Cell
from searchbench.findings import Finding, Said, step_at
from searchbench.kinds import Hint, Kind, Noise, Truth
from searchbench.limits import bits_per_run, bits_per_vote, expected_runs, fewest_runs
from searchbench.machine import MOST_RUNS, Machine, Spent, unit_noise
from searchbench.methods import (
    ASV,
    FACF,
    FIXED,
    METHODS,
    ORACLE,
    ORACLE_FRUGAL,
    OURS,
    PINPOINT,
    PINPOINT_TOLD,
    PLAIN,
)
from searchbench.plans import Planned, plan_lines
from searchbench.play import Play, covers, play, right
from searchbench.plays import CHUNK, ROOT, SIMULATION, Job, KeptPlays, jobs_of
from searchbench.scenarios import cells
from searchbench.score import calibration, coverage, score, stated
from searchbench.worlds import World, draw

PACKAGE = "searchbench"
SILENT = Kind(n=40, d=4.0, noise=Noise.NIL)
WITHOUT_A_PACKAGE = (OURS, PLAIN, FIXED, ASV, PINPOINT, PINPOINT_TOLD, FACF, ORACLE, ORACLE_FRUGAL)


def world_with(kind: Kind, *steps: int, broken: frozenset[int] = frozenset()) -> World:
    levels = np.zeros(kind.n)
    for step in steps:
        levels[step:] += kind.d * 0.1
    return World(kind=kind, seed=0, sigma=0.1, levels=levels, steps=steps, broken=broken, phase=0.0)


@pytest.mark.parametrize("truth", Truth)
@pytest.mark.parametrize("noise", Noise)
def test_a_world_and_its_noise_come_again(truth: Truth, noise: Noise) -> None:
    kind = Kind(truth=truth, noise=noise, wanders=True, gaps=True, hint=Hint.WRONG)
    one, other = draw(kind, 7), draw(kind, 7)
    assert one.steps == other.steps
    assert one.broken == other.broken
    assert one.levels.tolist() == other.levels.tolist()
    ends = [0, kind.n - 1] * 5
    runs = [[machine.run(at) for at in ends] for machine in (Machine(one), Machine(other))]
    assert runs[0] == runs[1]


def test_seeds_differ_and_sizes_of_steps_do_not_move_them() -> None:
    assert draw(Kind(), 1).steps != draw(Kind(), 2).steps
    assert draw(Kind(d=1.0), 3).steps == draw(Kind(d=4.0), 3).steps


@pytest.mark.parametrize("seed", range(50))
def test_the_truth_of_a_world(seed: int) -> None:
    world = draw(Kind(gaps=True), seed)
    (step,) = world.steps
    rises = [at for at, (a, b) in enumerate(pairwise(world.levels), 1) if a != b]
    assert rises == [step]
    assert world.levels[-1] == pytest.approx(2 * world.sigma)
    assert not {0, world.n - 1} & world.broken
    assert step in world.answer(step)
    assert world.answer(step) - {max(world.answer(step))} <= world.broken | {step}


@pytest.mark.parametrize("hint", [Hint.RIGHT, Hint.WRONG])
def test_a_hint_is_right_or_wrong(hint: Hint) -> None:
    for seed in range(10):
        world = draw(Kind(hint=hint), seed)
        assert world.prior is not None
        suspicious = world.prior[world.steps[0]] == world.prior.max()
        assert suspicious == (hint is Hint.RIGHT)


@pytest.mark.whole
@pytest.mark.parametrize("noise", [Noise.GAUSSIAN, Noise.HEAVY, Noise.BIMODAL])
def test_noise_has_mean_0_and_deviation_1(noise: Noise) -> None:
    rng = np.random.default_rng(5)
    values = [unit_noise(rng, noise) for _ in range(40_000)]
    assert np.mean(values) == pytest.approx(0, abs=0.03)
    assert np.std(values) == pytest.approx(1, abs=0.1)


def test_a_machine_counts_what_it_runs_and_builds() -> None:
    machine = Machine(world_with(SILENT, 20, broken=frozenset({5})))
    assert [machine.run(at) for at in (0, 0, 39, 5)] == [0.0, 0.0, pytest.approx(0.4), None]
    assert (machine.runs, machine.builds) == (3, 3)


def test_a_search_without_end_is_called_off() -> None:
    machine = Machine(world_with(SILENT, 20, broken=frozenset({5})))
    for at in (0, 5) * (MOST_RUNS // 2):
        machine.run(at)
    with pytest.raises(Spent):
        machine.run(0)


def test_what_was_called_off_said_nothing() -> None:
    assert play(OURS, Kind(n=40), 0, most_runs=3).said is Said.STOPPED


@pytest.mark.few(9)
@pytest.mark.parametrize("method", WITHOUT_A_PACKAGE)
@pytest.mark.parametrize("seed", range(3))
def test_every_search_finds_a_step_without_noise(method: str, seed: int) -> None:
    made = play(method, SILENT, seed)
    assert made.right
    assert made.said is Said.STEP


@pytest.mark.few(1)
@pytest.mark.parametrize("method", [PLAIN, FIXED, OURS])
def test_what_cannot_be_built_is_stepped_over(method: str) -> None:
    for seed in range(4):
        assert play(method, Kind(n=40, d=4.0, noise=Noise.NIL, gaps=True), seed).right


def test_the_package_itself_finds_a_step_without_noise() -> None:
    pytest.importorskip("git_bayesect")
    assert play("git_bayesect", SILENT, 0).right


def test_all_searches_that_are_asked_for_exist() -> None:
    assert {method for cell in cells() for method in cell.methods} <= set(METHODS)


def test_no_cell_is_asked_twice_and_no_seed_that_was_tuned_on() -> None:
    known = cells()
    assert len({(cell.group, cell.kind) for cell in known}) == len(known)
    assert max(cell.seeds(10_000).stop for cell in known) <= LAST_SEED


def test_jobs_are_all_seeds_of_all_cells() -> None:
    cell = cells()[0]
    made = jobs_of([cell], 200)
    seeds = sorted(seed for job in made if job.method == OURS for seed in job.seeds)
    assert seeds == list(cell.seeds(200))
    assert max(len(job.seeds) for job in made) <= CHUNK


@pytest.mark.parametrize(
    ("steps", "finding", "expected"),
    [
        ((20,), step_at(20), True),
        ((20,), step_at(21), False),
        ((20,), step_at(20, 21), False),
        ((20,), Finding(said=Said.UNDECIDED, suspects=frozenset({20})), False),
        ((), Finding(said=Said.NONE), True),
        ((), step_at(20), False),
        ((10, 20), step_at(20), False),
        (
            (10, 20),
            Finding(said=Said.STEP, named=frozenset({20}), also=frozenset({9, 10})),
            True,
        ),
    ],
)
def test_what_is_right(steps: tuple[int, ...], finding: Finding, expected: object) -> None:
    truth = (Truth.NONE, Truth.STEP, Truth.TWO)[len(steps)]
    assert right(world_with(Kind(n=40, truth=truth), *steps), finding) is expected


def test_in_a_stretch_the_whole_stretch_is_right_and_no_more() -> None:
    world = world_with(Kind(n=40), 20, broken=frozenset({19, 20, 21}))
    assert right(world, step_at(19, 20, 21, 22))
    assert not right(world, step_at(18, 19, 20, 21, 22))


def test_what_is_undecided_claims_its_suspects() -> None:
    world = world_with(Kind(n=40), 20)
    claimed = Finding(said=Said.UNDECIDED, suspects=frozenset({19, 20}))
    assert covers(world, claimed) is True
    assert covers(world, Finding(said=Said.UNDECIDED, suspects=frozenset({7}))) is False
    assert covers(world, Finding(said=Said.NONE)) is None


@pytest.mark.parametrize(("d", "bits"), [(1.0, 0.161), (2.0, 0.486)])
def test_the_information_limit_is_the_known_one(d: float, bits: float) -> None:
    assert bits_per_run(d) == pytest.approx(bits, rel=0.05)
    assert 0.64 <= bits_per_vote(d) / bits <= 0.77


def test_small_steps_tell_by_their_square_and_large_ones_a_whole_bit() -> None:
    assert bits_per_run(0.1) == pytest.approx(0.01 / (8 * math.log(2)), rel=0.01)
    assert bits_per_run(12.0) == pytest.approx(1.0, abs=1e-3)


def test_proving_costs_more_than_finding() -> None:
    for d in (0.5, 1.0, 2.0):
        assert 0 < fewest_runs(128, d, 0.05) < expected_runs(128, d, 0.05)


def made_play(*, correct: bool, confidence: float) -> Play:
    return Play(
        seed=0, said=Said.STEP, right=correct, fair=correct, one=correct, every=correct,
        covers=correct, effect_holds=correct, none_holds=None, named=1, also=0,
        confidence=confidence, runs=10 if correct else 30, builds=9, steps=2, seconds=0.01,
    )  # fmt: skip


def test_scores_are_shares_and_means() -> None:
    plays = [made_play(correct=True, confidence=0.96)] * 3
    plays.append(made_play(correct=False, confidence=0.996))
    found = score(plays)
    assert (found.right, found.runs, found.builds, found.step_ms) == (0.75, 15.0, 9.0, 5.0)
    sure = stated(plays)
    assert sure is not None
    assert (sure.stated, sure.true) == (pytest.approx(0.969), 0.75)
    assert [(low, each.true) for low, _, each in calibration(plays)] == [(0.95, 1.0), (0.995, 0.0)]
    claimed = coverage(each.covers for each in plays)
    assert claimed is not None
    assert claimed[:2] == (4, 0.75)


def test_plans_of_several_machines_have_an_error_and_those_of_one_have_none() -> None:
    half, whole = (Planned(paired=False, most_runs=5, taken=(4, more)) for more in (6, 5))
    assert "75.0% ± 25.0% took no more" in "".join(plan_lines([half, whole]))
    assert "50.0% took no more" in "".join(plan_lines([half]))


def test_what_was_played_is_not_played_again(tmp_path: Path) -> None:
    """After an interruption, and after a line that was not written to its end."""
    kept = KeptPlays(file=tmp_path / "plays.jsonl")
    jobs = jobs_of([Cell(group="g", kind=SILENT, methods=(OURS,))], 2 * CHUNK)
    asked: list[Job] = []

    def first_of(rest: Sequence[Job]) -> Iterator[tuple[Job, list[Play]]]:
        for job in rest[:1]:
            asked.append(job)
            yield job, [play(job.method, job.cell.kind, job.seeds[0])]

    first = dict(kept.with_the_rest(jobs, first_of))
    with kept.file.open("a") as out:
        out.write('{"job": "cut o')
    second = dict(kept.with_the_rest(jobs, first_of))
    assert asked == jobs[:2]
    assert {job: second[job] for job in first} == first
    assert len(second) == len(kept.known()) == 2


def test_what_decides_a_play_is_what_it_imports() -> None:
    """Else plays of other code would count."""
    folder, found, left = ROOT / "benchmarks" / "search" / "searchbench", set[str](), ["play"]
    while left:
        name = left.pop()
        found.add(name)
        for node in ast.walk(ast.parse((folder / f"{name}.py").read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
                below = str(node.module).removeprefix(PACKAGE).removeprefix(".")
                names = {below} if below else {each.name for each in node.names}
                left += names - found
    assert found == set(SIMULATION)
