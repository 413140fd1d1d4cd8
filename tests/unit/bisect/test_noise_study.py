"""A row against itself: only whole pairs of valid runs count, and what is stored goes on."""

from __future__ import annotations

import pytest
from worlds import sample_of

from dsbisect.open_campaigns import whole_runs
from dsharness.errors import InconclusiveError
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
