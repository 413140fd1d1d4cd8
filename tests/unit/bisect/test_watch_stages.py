"""When a watch's search says that it has seen something, and that it goes on from there."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from observers import RecordingObserver
from worlds import World

from dsbisect.watch_stages import SearchStages
from dsresults.watch.alarms import AlarmState
from dssearch.bayes.bayes_search import Bayes
from dssearch.question import Question

QUIET = dict.fromkeys("abcdefgh", 100.0)
SLOWER = {name: 100.0 if name < "e" else 150.0 for name in "abcdefgh"}
FASTER = {name: 100.0 if name < "e" else 60.0 for name in "abcdefgh"}


def told(costs: Mapping[str, float], seed: int = 0) -> list[tuple[AlarmState, str, int]]:
    """What is told in a search of that world, and after how many turns."""
    world, observer = World(costs, seed=seed), RecordingObserver()
    told: list[tuple[AlarmState, str, int]] = []
    turns: list[int] = []
    world.search(Bayes())
    names = tuple(costs)
    stages = SearchStages(
        observer=observer,
        reference=names[0],
        tip=names[-1],
        began=lambda state, note: told.append((state, note, len(turns))),
    )
    question = Question(series_id="s", line=names, workload_id="w", settings_id="default")
    for step in world.asked:
        turns.append(step.turn)
        stages.step(question, step)
        for sample in world.taken:
            if sample.turn == step.turn:
                stages.sampled(sample)
    assert observer.names.count("step") == len(world.asked)
    assert observer.names.count("sampled") == len(world.taken)
    return told


def test_a_worse_tip_is_new_once_both_ends_were_measured_and_then_bisected() -> None:
    (new, note, first), (bisecting, _, later) = told(SLOWER)
    assert (new, bisecting) == (AlarmState.NEW, AlarmState.BISECTING)
    assert 1 < first <= later, "one turn says nothing of the noise"
    assert note.startswith("so far h 1.")
    assert note.endswith(" times slower than a")


def test_of_two_neighbours_nothing_lies_between() -> None:
    assert [state for state, *_ in told({"a": 100.0, "b": 150.0})] == [AlarmState.NEW]


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_bisected_where_nothing_is_worse(seed: int) -> None:
    assert AlarmState.BISECTING not in [state for state, *_ in told(QUIET, seed)]
    assert told(FASTER, seed) == []


def test_a_comparison_of_others_says_nothing_of_the_tip() -> None:
    world = World(SLOWER)
    world.search(Bayes())
    seen: list[AlarmState] = []
    stages = SearchStages(
        observer=RecordingObserver(),
        reference="x",
        tip="y",
        began=lambda state, _: seen.append(state),
    )
    question = Question(series_id="s", line=tuple(SLOWER), workload_id="w", settings_id="default")
    for step in world.asked:
        stages.step(question, step)
    assert seen == []
