"""The load that a search of commits takes where none is named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dsbisect.commits.commits_question import Commits
from dsbisect.compare_study import SIDES
from dsbisect.compared_sources import ComparedSides
from dsbisect.comparison_question import Compare
from dsbisect.found_load import compared_ends, found_load, looks_for_load
from dsbisect.study_answers import StudyRecord
from dsbisect.study_lab import Scene
from dsharness.matrix import load_matrix
from dsharness.model import Boundary, Finding
from dsresults.compare.compared_loads import ComparedLoad, ComparedLoads
from dsresults.store import Store

SCENE = Scene(matrix=load_matrix(None, folder=False))


def load(name: str, direction: str, effect: float, width: float, runs: int, **more: Any) -> Any:
    boundary = boundary_of(name, direction, effect, width)
    return ComparedLoad(
        workload_id=name, title=name, metric="cost", boundary=boundary, runs=runs, **more
    )


def boundary_of(name: str, direction: str, effect: float, width: float, **more: Any) -> Boundary:
    return Boundary(
        series_id="compare", workload_id=name, settings_id="default", found=direction != "none",
        before="a", after="b", direction=direction, effect=effect, summary=f"b is {direction}",
        effect_interval=(effect / width, effect * width), **more,
    )  # fmt: skip


def compared(*loads: ComparedLoad) -> ComparedLoads:
    return ComparedLoads(
        first="a", second="b", margin_pct=10.0, loads=loads, measured_from="", measured_until=""
    )


def test_what_tells_soonest_is_taken() -> None:
    answer = compared(
        load("search-equality", "none", 1.0, 1.05, 40),
        load("modify", "slower", 1.2, 1.1, 30),
        load("bind-one", "slower", 8.0, 1.05, 4),
        load("bind-random", "faster", 20.0, 1.05, 4),
    )
    found = found_load(answer, SCENE)
    assert found is not None
    assert (found.workload.id, found.metric) == ("bind-one", "cost")
    assert found.why.endswith("b is slower (4 pairs of runs); 2 other loads can tell too")


def test_another_metric_of_the_same_runs_may_show_it() -> None:
    grows = boundary_of("modify", "slower", 3.0, 1.1, metric="growth")
    answer = compared(load("modify", "none", 1.0, 1.05, 6, also=(grows,)))
    found = found_load(answer, SCENE)
    assert found is not None
    assert (found.workload.id, found.metric) == ("modify", "growth")


def test_what_is_only_faster_is_searched_for_too() -> None:
    found = found_load(compared(load("modify", "faster", 2.0, 1.1, 6)), SCENE)
    assert found is not None


def test_ends_that_no_load_tells_apart_have_none() -> None:
    assert found_load(compared(load("modify", "none", 1.0, 1.05, 6)), SCENE) is None


def test_none_is_looked_for_where_ends_are_changed_or_the_load_is_named() -> None:
    asked = Commits(between="a..b")
    assert looks_for_load(asked)
    named: tuple[dict[str, Any], ...] = (
        {"workload": "bind-one"},
        {"metric": "memory"},
        {"fixes": ("c",)},
        {"edits": ("e",)},
    )
    for words in named:
        assert not looks_for_load(asked.model_copy(update=words))


@pytest.mark.parametrize(("names", "again"), [(("a", "b"), False), (("a", "c"), True)])
def test_an_earlier_comparison_counts_for_the_same_commits_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str], again: bool
) -> None:
    comparison = Compare(first="1.0", second="HEAD", repository=".")
    sides = ComparedSides(names=("a", "b"), titles=("1.0", "HEAD"))
    record = StudyRecord(
        study=comparison.model_dump(mode="json"), title="", session="", workloads={}, campaigns=(),
        failures={}, looks={SIDES: sides.model_dump(mode="json")},
        answer=compared(load("modify", "none", 1.0, 1.05, 6)).model_dump(mode="json"),
    )  # fmt: skip
    measured: list[Compare] = []
    monkeypatch.setattr("dsbisect.found_load.answered", lambda study, _: measured.append(study))
    with Store.open(tmp_path / "s.db") as store:
        store.put(Finding.now("compare", record, title="", answer=""))
        now = SimpleNamespace(sides=sides.model_copy(update={"names": names}))
        scene = Scene(matrix=SCENE.matrix, opened={"made": now})
        lab: Any = SimpleNamespace(scene=scene, store=store)
        compared_ends(comparison, lab)
    assert (measured == [comparison]) == again
