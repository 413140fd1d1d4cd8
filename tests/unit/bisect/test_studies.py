"""A study: played, interrupted, kept, and played again from the store alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from shipped import MATRIX
from world_lab import WorldLab
from worlds import World

from dsbisect.cli.stored_answers import check_finding, stored_answer
from dsbisect.studies import STUDIES, Endurance, Levels, Sizes, Study
from dsbisect.study_answers import StudyAnswer, answered
from dsharness.errors import ExitCode, InstanceError, UnreadableError
from dsharness.measure.metrics import LATENCY_P99
from dsresults.store import Store

WORLD = World({"debian-12": 1, "debian-13": 4}, noise=0.02)
ROWS = ("debian-12", "debian-13")
LEVELS = Levels(rows=ROWS, workload="search-as-user", shares_pct=(50, 100, 300), runs=2)
SIZES = Sizes(rows=ROWS, workload="search-candidates", sizes=(1000, 2000), runs=2)
ENDURANCE = Endurance(row="debian-12", workload="search-as-user", minutes=1)
ALL = (LEVELS, SIZES, ENDURANCE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def kinds(studies: tuple[Study, ...]) -> list[str]:
    return [study.kind for study in studies]


def test_each_kind_of_study_is_played_here() -> None:
    assert kinds(ALL) == list(STUDIES)


@pytest.mark.parametrize("study", ALL, ids=kinds(ALL))
def test_a_study_travels_as_a_document(study: Study) -> None:
    assert type(study).model_validate_json(study.model_dump_json()) == study
    with pytest.raises(ValidationError):
        type(study).model_validate({**study.model_dump(), "other": 1})


@pytest.mark.parametrize("study", ALL, ids=kinds(ALL))
def test_an_answer_is_kept_and_found_again(study: Study, store: Store) -> None:
    lab = WorldLab(store=store, world=WORLD)
    kept = answered(study, lab)
    (finding,) = store.findings(study.kind)
    check_finding(finding)
    again = StudyAnswer.of(finding)
    assert (again.study, again.answer) == (study, kept.answer)
    assert again.again(store, MATRIX) == kept.answer
    shown = stored_answer(store, MATRIX, [finding.id])
    assert shown.value == kept.answer
    assert stored_answer(store, MATRIX, [kept.record.campaigns[-1]]).value == kept.answer
    assert stored_answer(store, MATRIX, []).text == "\n".join(kept.form.told(kept.answer))


@pytest.mark.parametrize("study", [LEVELS, SIZES], ids=kinds((LEVELS, SIZES)))
def test_what_was_interrupted_continues_and_nothing_is_measured_twice(
    study: Study, store: Store
) -> None:
    whole = WorldLab(store=store, world=WORLD, stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        answered(study, whole)
    assert store.findings(study.kind) == []
    lab = WorldLab(store=store, world=WORLD)
    kept = answered(study, lab)
    before = lab.taken
    again = WorldLab(store=store, world=WORLD)
    assert answered(study, again).answer == kept.answer
    assert (again.taken, before > 0) == (0, True)
    assert len(store.findings(study.kind)) == 1


def test_more_runs_are_another_answer_and_the_first_one_stays(store: Store) -> None:
    kept = answered(LEVELS, WorldLab(store=store, world=WORLD))
    more = answered(LEVELS.model_copy(update={"runs": 4}), WorldLab(store=store, world=WORLD))
    assert more.answer != kept.answer
    first, second = store.findings("levels")
    assert StudyAnswer.of(first).answer == kept.answer
    assert StudyAnswer.of(second).again(store, MATRIX) == more.answer


def test_a_row_that_cannot_be_made_is_told_again_as_it_was(store: Store) -> None:
    load = SIZES.loads(WorldLab(store=store, world=WORLD).scene)[1].id
    unmade = {load: {"debian-13": InstanceError("debian-13 did not become ready")}}
    kept = answered(SIZES, WorldLab(store=store, world=WORLD, unmade=unmade))
    assert "did not become ready" in kept.answer.rows[1].points[1].note
    (finding,) = store.findings("sizes")
    assert StudyAnswer.of(finding).again(store, MATRIX) == kept.answer


def test_a_kind_that_cannot_be_made_of_what_was_imported_is_refused(store: Store) -> None:
    answered(LEVELS, WorldLab(store=store, world=WORLD))
    (finding,) = store.findings("levels")
    for part in ("study", "answer"):
        changed = finding.model_copy(update={"value": {**finding.value, part: {"rows": 3}}})
        with pytest.raises(UnreadableError) as refused:
            check_finding(changed)
        assert refused.value.exit_code is ExitCode.STORE


def test_the_metric_of_levels_is_there() -> None:
    assert LEVELS.decider == ENDURANCE.decider == LATENCY_P99.name
