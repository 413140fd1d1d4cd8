"""A study: played, interrupted, kept, and played again from the store alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError
from shipped import MATRIX
from typer.testing import CliRunner
from world_machine import Fleet, TimedBenches, WorldMachine
from worlds import World

from dsbisect.cli.root import app
from dsbisect.cli.stored_answers import check_finding, stored_answer
from dsbisect.shared_studies import SharedQuestion, document_of, shared_study
from dsbisect.studies import STUDIES, Compare, Endurance, Levels, Rows, Sizes
from dsbisect.study import KEPT, Study
from dsbisect.study_answers import StudyAnswer, StudyRecord, answered
from dsbisect.study_lab import Scene
from dsharness.errors import ExitCode, InstanceError, UnreadableError, UsageError
from dsharness.measure.metrics import LATENCY_P99
from dsharness.model import (
    Finding,
    Prepared,
    PreparedLab,
    Procedure,
    SharedRun,
)
from dsharness.model.campaign import FindingKind
from dslab.known_answers import KnownAnswers, UnansweredError
from dsresults.page.page_text import text_of
from dsresults.store import Store

WORLD = World({"debian-12": 1, "debian-13": 4}, noise=0.02)
ROWS = ("debian-12", "debian-13")
LEVELS = Levels(rows=ROWS, workload="search-as-user", shares_pct=(50, 100, 300), runs=2)
SIZES = Sizes(rows=ROWS, workload="search-candidates", sizes=(1000, 2000), runs=2)
ENDURANCE = Endurance(row="debian-12", workload="search-as-user", minutes=1)
ROWS_STUDY = Rows(series="debian", workload=("bind-one",), good="debian-12", bad="debian-13")
COMPARE = Compare(first=ROWS[0], second=ROWS[1], workload=("bind-one", "session"))
ALL = (LEVELS, SIZES, ENDURANCE, COMPARE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "results.db") as opened:
        yield opened


def kinds(studies: tuple[Study, ...]) -> list[str]:
    return [study.kind for study in studies]


def test_each_kind_of_study_is_played_here_or_in_a_file_of_its_own() -> None:
    assert {*kinds((ROWS_STUDY, *ALL)), "schemes", "explain", "timeline"} == STUDIES.keys()
    assert {*kinds(ALL), "schemes", "explain", "timeline"} == set(KEPT)


@pytest.mark.parametrize("study", [ROWS_STUDY, *ALL], ids=kinds((ROWS_STUDY, *ALL)))
def test_a_study_travels_as_a_document(study: Study) -> None:
    assert type(study).model_validate_json(study.model_dump_json()) == study
    with pytest.raises(ValidationError):
        type(study).model_validate({**study.model_dump(), "other": 1})


@pytest.mark.parametrize(
    ("words", "series", "line"),
    [
        ({}, "debian", ("debian-11", "debian-12", "debian-13", "debian-sid")),
        ({"between": "debian-12..debian-13"}, "debian", ("debian-12", "debian-13")),
        ({"between": "debian-13.."}, "debian", ("debian-13", "debian-sid")),
        ({"between": "..debian-12"}, "debian", ("debian-11", "debian-12")),
        ({"between": "debian", "good": "debian-13"}, "debian", ("debian-13", "debian-sid")),
        (
            {"between": "debian-12-bind..debian-13-bind"},
            "bind",
            ("debian-12-bind", "debian-13-bind"),
        ),
    ],
)
def test_rows_are_named_by_their_ends_or_their_series(
    words: dict[str, str], series: str, line: tuple[str, ...]
) -> None:
    request = Rows.model_validate({"workload": ("idle",), **words}).request(Scene(matrix=MATRIX))
    assert (request.series.id, request.lines) == (series, (line,))


@pytest.mark.parametrize("study", ALL, ids=kinds(ALL))
def test_an_answer_is_kept_and_found_again(study: Study, store: Store) -> None:
    lab = WorldMachine(store=store, world=WORLD)
    kept = answered(study, lab)
    (finding,) = store.findings(study.kind)
    check_finding(finding)
    again = StudyAnswer.of(finding)
    assert (again.study, again.answer) == (study, kept.answer)
    assert again.again(store, MATRIX) == kept.answer
    shown = stored_answer(store, MATRIX, [finding.id])
    assert shown.value == kept.answer
    assert stored_answer(store, MATRIX, [kept.record.campaigns[-1]]).value == kept.answer
    assert stored_answer(store, MATRIX, []).text == text_of(kept.answer.page())


@pytest.mark.parametrize("study", [LEVELS, SIZES, COMPARE], ids=kinds((LEVELS, SIZES, COMPARE)))
def test_what_was_interrupted_continues_and_nothing_is_measured_twice(
    study: Study, store: Store
) -> None:
    whole = WorldMachine(store=store, world=WORLD, stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        answered(study, whole)
    assert store.findings(study.kind) == []
    lab = WorldMachine(store=store, world=WORLD)
    kept = answered(study, lab)
    before = lab.taken
    again = WorldMachine(store=store, world=WORLD)
    assert answered(study, again).answer == kept.answer
    assert (again.taken, before > 0) == (0, True)
    assert len(store.findings(study.kind)) == 1


def test_more_runs_are_another_answer_and_the_first_one_stays(store: Store) -> None:
    kept = answered(LEVELS, WorldMachine(store=store, world=WORLD))
    more = answered(LEVELS.model_copy(update={"runs": 4}), WorldMachine(store=store, world=WORLD))
    assert more.answer != kept.answer
    first, second = store.findings("levels")
    assert StudyAnswer.of(first).answer == kept.answer
    assert StudyAnswer.of(second).again(store, MATRIX) == more.answer


def test_a_row_that_cannot_be_made_is_told_again_as_it_was(store: Store) -> None:
    load = SIZES.loads(WorldMachine(store=store, world=WORLD).scene)[1].id
    unmade = {load: {"debian-13": InstanceError("debian-13 did not become ready")}}
    kept = answered(SIZES, WorldMachine(store=store, world=WORLD, unmade=unmade))
    assert "did not become ready" in kept.answer.rows[1].points[1].note
    (finding,) = store.findings("sizes")
    assert StudyAnswer.of(finding).again(store, MATRIX) == kept.answer


def test_a_kind_that_cannot_be_made_of_what_was_imported_is_refused(store: Store) -> None:
    answered(LEVELS, WorldMachine(store=store, world=WORLD))
    (finding,) = store.findings("levels")
    for part in ("study", "answer"):
        changed = finding.model_copy(update={"value": {**finding.value, part: {"rows": 3}}})
        with pytest.raises(UnreadableError) as refused:
            check_finding(changed)
        assert refused.value.exit_code is ExitCode.STORE


@pytest.mark.parametrize("kind", get_args(FindingKind))
def test_each_kind_of_finding_has_a_type_that_refuses_another(kind: FindingKind) -> None:
    finding = Finding(kind=kind, found_at="2026-11-29T08:00:00+00:00", value={"odd": 1})
    with pytest.raises(UnreadableError, match=f"({kind}).*odd"):
        check_finding(finding)


@pytest.mark.parametrize("study", [LEVELS, ROWS_STUDY], ids=kinds((LEVELS, ROWS_STUDY)))
def test_machines_answer_what_one_machine_does(study: Study, store: Store, tmp_path: Path) -> None:
    one = study.play(WorldMachine(store=store, world=WORLD))
    scene = Scene(matrix=MATRIX)
    document = json.loads(json.dumps(document_of(study, scene)))
    run = SharedRun(
        id="2659bfe9-2d12-40ed-ab14-6af431bce5fc", request_key="k", machines=2,
        started_at="2026-11-27T07:00:00+00:00", request=document,
    )  # fmt: skip
    shared = shared_study(run)
    assert isinstance(shared, SharedQuestion)
    assert (shared.study, shared.begins_with) == (study, ROWS)
    lab = PreparedLab(procedure=Procedure(version=1), paired=False, identities={}, unmeasurable={})
    prepared = Prepared(class_name="c", labs={load.id: lab for load in study.loads(scene)})
    with Store.open(tmp_path / "shared.db") as team:
        benches = TimedBenches(WORLD)
        finding = shared.answer(Fleet(team, benches), team, prepared=prepared)
        campaigns = team.campaigns()
        if finding is None:
            assert [each.boundary.summary for each in campaigns if each.boundary] == [
                each.boundary.summary for each in one.campaigns
            ]
            return
        team.put(finding)
        told = shared.stored_answer(campaigns, team)
        assert [row.capacity_per_s for row in told.answer.rows] == [
            row.capacity_per_s for row in one.rows
        ]
        assert [len(row.levels) for row in told.answer.rows] == [3, 3]
        assert {level.runs for row in told.answer.rows for level in row.levels} <= {0, 2}
        assert not any(campaign.boundary is None for campaign in campaigns)
        with pytest.raises(UnansweredError):
            shared.answer(KnownAnswers(campaigns=campaigns[:1]), team, prepared=prepared)


@pytest.mark.parametrize("edited", [False, True])
def test_replay_plays_a_stored_answer_from_its_runs(
    store: Store, tmp_path: Path, *, edited: bool
) -> None:
    kept = answered(LEVELS, WorldMachine(store=store, world=WORLD))
    (finding,) = store.findings("levels")
    if edited:
        value = {**finding.value, "answer": {**kept.record.answer, "connections": 7}}
        finding = Finding.now("levels", StudyRecord.model_validate(value), title="t", answer="a")
        store.put(finding)
    place = str(tmp_path / "results.db")
    told = CliRunner().invoke(app, ["show", "again", finding.id, "--store", place, "--json"])
    assert json.loads(told.stdout)["same"] is not edited
    assert told.exit_code == (ExitCode.INCONCLUSIVE if edited else 0)
    with pytest.raises(UsageError, match="holds no answer '1234'"):
        CliRunner().invoke(app, ["show", "again", "1234", "--store", place], catch_exceptions=False)


def test_the_metric_of_levels_is_there() -> None:
    assert LEVELS.decider == ENDURANCE.decider == LATENCY_P99.name
