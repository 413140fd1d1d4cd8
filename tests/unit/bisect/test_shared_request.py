"""A matrix as it travels to other machines, and what its rows hold there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import JsonValue

from dsbisect.shared_request import MatrixTexts
from dsbisect.shared_studies import SharedQuestion, SharedStudies, document_of
from dsbisect.studies import Rows
from dsbisect.study_lab import Scene
from dsharness.errors import MatrixError
from dsharness.matrix import load_matrix
from dsharness.model import Matrix, Prepared, SharedRun
from dsimages.image_set import lock_of
from dsimages.matrix_lock import Locked, MatrixLock, definition_key

ROOT = Path(__file__).parents[3]
ROW, OTHER_ROW = "debian-13", "debian-12"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "matrix.yaml"
    file.write_bytes((ROOT / "matrix.yaml").read_bytes())
    return load_matrix(file)


def locked(matrix: Matrix, version: str, name: str = ROW) -> Locked:
    row = matrix.row(name)
    return Locked(row=definition_key(row), packages={"389-ds-base": version}, manifest=version)


def run_of(lock: str | None, request: dict[str, JsonValue] | None = None) -> SharedRun:
    prepared = None
    if lock is not None:
        prepared = Prepared(class_name="c", lock=lock)
    return SharedRun(
        id="3f2a9c01-0000-4000-8000-000000000000", request_key="k", machines=2,
        request=request or {}, started_at="2026-11-28T12:00:00+00:00", prepared=prepared,
    )  # fmt: skip


def rows_run(matrix: Matrix, lock: str | None) -> SharedRun:
    study = Rows(series=matrix.series[0].id, workload=("bind-one",))
    return run_of(lock, document_of(study, Scene(matrix=matrix)))


@pytest.mark.parametrize(
    ("first", "wanted"),
    [(None, "1"), ("", "1"), ("2", "2")],
    ids=["nobody prepared it", "by an older version", "the first machine has made its rows"],
)
def test_rows_hold_what_those_of_the_first_machine_do(
    tmp_path: Path, asked: Matrix, first: str | None, wanted: str
) -> None:
    lock_of(asked).write(asked.row(ROW), locked(asked, "1"))
    texts = MatrixTexts.of(asked)
    told = first
    if first:
        of_first = MatrixLock(path=tmp_path / "first.lock")
        of_first.write(asked.row(ROW), locked(asked, first))
        told = of_first.text
    there = texts.loaded(run_of(told))
    assert lock_of(there).read(there.row(ROW)) == locked(asked, wanted)


def test_a_machine_that_locked_rows_itself_follows_the_first(tmp_path: Path, asked: Matrix) -> None:
    """As one that prepared, too, and was thought dead; its further rows are kept."""
    study_of = SharedStudies()
    before = study_of(rows_run(asked, None))
    assert isinstance(before, SharedQuestion)
    mine = lock_of(before.scene.matrix)
    for row in (ROW, OTHER_ROW):
        mine.write(asked.row(row), locked(asked, "1", row))
    of_first = MatrixLock(path=tmp_path / "first.lock")
    of_first.write(asked.row(ROW), locked(asked, "2"))
    for studies in (study_of, SharedStudies()):
        study = studies(rows_run(asked, of_first.text))
        assert isinstance(study, SharedQuestion)
        there = lock_of(study.scene.matrix)
        assert there.read(asked.row(ROW)) == locked(asked, "2")
        assert there.read(asked.row(OTHER_ROW)) == locked(asked, "1", OTHER_ROW)


@pytest.mark.parametrize("lock", ["{", '{"rows": []}', '{"version": 7}'])
def test_a_lock_that_cannot_be_read_is_refused(asked: Matrix, lock: str) -> None:
    with pytest.raises(MatrixError, match=r"lock"):
        MatrixTexts.of(asked).loaded(run_of(lock))


def test_a_matrix_without_a_lock_travels_without_one(asked: Matrix) -> None:
    there = MatrixTexts.of(asked).loaded(run_of(None))
    assert lock_of(there).text == ""
    assert lock_of(there).read(there.row(ROW)) is None
