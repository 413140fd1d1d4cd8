"""A row against itself: only whole pairs of valid runs count, and what is stored goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from world_machine import WorldMachine
from worlds import World, sample_of

from dsbisect.measure_study import RowNoise, RowRuns
from dsbisect.open_campaigns import whole_runs
from dsharness.errors import InconclusiveError
from dsresults.store import Store
from dssearch.planner import Rounds, advance
from dssearch.question import Answer, History, Measure, Question

PAIR = Question(series_id="r", line=("r", "r-again"), workload_id="w", settings_id="default")


def spoiled(name: str, turn: int):
    return sample_of(name, 1.0, turn).model_copy(update={"invalid": ("the server died",)})


def step_after(rounds: Rounds, history: History):
    return advance(PAIR, rounds, history, ())


def test_a_turn_with_an_invalid_run_is_measured_again() -> None:
    rounds = Rounds(missing=whole_runs(PAIR.line, 2))
    history = History.of_samples(
        [
            *(sample_of(name, 1.0, 0) for name in PAIR.line),
            sample_of("r", 1.0, 1),
            spoiled("r-again", 1),
        ]
    )
    assert isinstance(step_after(rounds, history), Measure)
    more = history.after([sample_of("r", 1.0, 2), sample_of("r-again", 1.0, 2)], {})
    assert isinstance(step_after(rounds, more), Answer)


def test_a_side_that_fails_again_and_again_ends_it_with_the_reason() -> None:
    runs = [
        run for turn in range(3) for run in (sample_of("r", 1.0, turn), spoiled("r-again", turn))
    ]
    with pytest.raises(InconclusiveError, match=r"r-again cannot be measured: .*died"):
        step_after(Rounds(missing=whole_runs(PAIR.line, 2)), History.of_samples(runs))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def test_a_row_is_measured_again_and_an_interrupted_load_continues(store: Store) -> None:
    study = RowRuns(row="debian-12", workload=("bind-one", "search-equality"), runs=3)
    world = World({"debian-12": 1.0})
    with pytest.raises(KeyboardInterrupt):
        study.play(WorldMachine(store=store, world=world, stop_after=4))
    second = WorldMachine(store=store, world=world)
    samples = study.play(second)
    assert (len(samples), second.taken) == (6, 3 + 2), "the first load had its answer"
    again = WorldMachine(store=store, world=world)
    assert not {sample.id for sample in samples} & {sample.id for sample in study.play(again)}
    assert again.taken == 6


def test_both_sides_of_a_row_are_measured_now(store: Store) -> None:
    study = RowNoise(row="debian-12", workload=("bind-one",), runs=4, keeps=False)
    world = World(dict.fromkeys(study.sides, 1.0))
    for _ in range(2):
        lab = WorldMachine(store=store, world=world)
        samples = study.play(lab)
        assert (len(samples), lab.taken) == (8, 8)
    assert {sample.candidate_id for sample in samples} == {"debian-12", "debian-12-again"}
