"""Two rows under every load: each load is told, and none is named where both cost the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shipped import MATRIX
from world_machine import WorldMachine
from worlds import World

from dsbisect.compare_study import labs_of, suite_of
from dsbisect.comparison_question import Compare
from dsbisect.study_lab import Scene
from dsharness.errors import InstanceError, UsageError
from dsharness.measure.metrics import METRICS
from dsresults.compare.compared_loads import ComparedLoads, Word
from dsresults.store import Store

ROWS = ("debian-12", "debian-13")
LOADS = ("bind-one", "bind-random", "session", "connect")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def compare(*loads: str, **more: object) -> Compare:
    return Compare.model_validate({"first": ROWS[0], "second": ROWS[1], "workload": loads, **more})


def played(study: Compare, store: Store, times: float, **more: object) -> ComparedLoads:
    world = World({ROWS[0]: 1, ROWS[1]: times}, **{"noise": 0.02, **more})
    answer = study.play(WorldMachine(store=store, world=world))
    assert isinstance(answer, ComparedLoads)
    return answer


def test_the_suite_has_each_load_that_both_can_answer() -> None:
    scene = Scene(matrix=MATRIX)
    judged = suite_of(compare(), scene)
    names = {row.load.id for row in judged}
    assert {"bind-random", "connect", "idle", "import", "write-members"} <= names
    assert not {name for name in names if name.startswith(("dns", "kerberos"))}
    assert [row.metrics for row in judged if row.load.id == "search-equality"] == [
        ("cost", "growth"), ("syscalls",),
    ]  # fmt: skip
    groups = list(labs_of(judged))
    assert sum(map(len, groups)) == len(judged)
    assert all(len({row.load.tool for row in group}) == 1 for group in groups)


def test_every_metric_of_the_shipped_suite_is_one() -> None:
    for metrics in MATRIX.defaults.suite.values():
        assert set(metrics) <= METRICS.keys()


@pytest.mark.parametrize(("times", "word"), [(1.5, Word.SLOWER), (0.5, Word.FASTER)])
def test_a_difference_is_named_with_its_size(times: float, word: Word, store: Store) -> None:
    answer = played(compare(*LOADS), store, times)
    assert [load.word for load in answer.loads] == [word] * len(LOADS)
    assert answer.refused == (word is Word.SLOWER)
    for load in answer.loads:
        low, high = load.interval or (0.0, 0.0)
        assert low < times < high
        assert load.runs < 10


@pytest.mark.parametrize("seed", range(6))
def test_what_costs_the_same_is_the_same_within_the_margin(seed: int, store: Store) -> None:
    answer = played(compare(*LOADS), store, 1.0, seed=seed)
    assert [load.word for load in answer.loads] == [Word.SAME] * len(LOADS)
    assert not answer.refused
    assert not answer.inconclusive
    for load in answer.loads:
        assert load.boundary
        assert (load.boundary.smallest_visible_pct or 0) <= 5.5


def test_a_difference_below_the_margin_is_no_reason_to_say_no(store: Store) -> None:
    answer = played(compare("bind-one", margin=10), store, 1.04, noise=0.004)
    assert not answer.refused


def test_a_row_that_cannot_be_made_leaves_its_loads_unknown(store: Store) -> None:
    study = compare("bind-one", "connect")
    world = World(dict.fromkeys(ROWS, 1.0))
    scene = Scene(matrix=MATRIX)
    part = f"{ROWS[0]}/{ROWS[1]}/default/connect"
    machine = WorldMachine(
        store=store,
        world=world,
        scene=scene,
        unmade={part: {ROWS[1]: InstanceError("it did not become ready")}},
    )
    answer = study.play(machine)
    assert isinstance(answer, ComparedLoads)
    first, second = answer.loads
    assert (first.word, second.word) == (Word.SAME, Word.UNKNOWN)
    assert "did not become ready" in second.why


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"second": ROWS[0]}, "is both rows"),
        ({"metric": "rate"}, "needs a --workload"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare(**words)
