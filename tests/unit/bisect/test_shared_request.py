"""A matrix as it travels to other machines, and what its rows hold there."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsbisect.shared_request import MatrixTexts
from dsharness.matrix import load_matrix
from dsharness.model import Matrix, Prepared, Procedure, SharedRun
from dsimages.image_set import lock_of
from dsimages.matrix_lock import Locked, MatrixLock, definition_key

ROOT = Path(__file__).parents[3]
ROW = "debian-13"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Matrix:
    monkeypatch.setenv("DSBISECT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "matrix.yaml"
    file.write_bytes((ROOT / "matrix.yaml").read_bytes())
    return load_matrix(file)


def locked(matrix: Matrix, version: str) -> Locked:
    row = matrix.row(ROW)
    return Locked(row=definition_key(row), packages={"389-ds-base": version}, manifest=version)


def run_of(lock: str | None) -> SharedRun:
    prepared = None
    if lock is not None:
        prepared = Prepared(
            class_name="c", procedure=Procedure(version=1), paired=False, identities={},
            unmeasurable={}, lock=lock,
        )  # fmt: skip
    return SharedRun(
        id="3f2a9c01-0000-4000-8000-000000000000", request_key="k", machines=2, request={},
        started_at="2026-11-28T12:00:00+00:00", prepared=prepared,
    )  # fmt: skip


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


def test_a_matrix_without_a_lock_travels_without_one(asked: Matrix) -> None:
    there = MatrixTexts.of(asked).loaded(run_of(None))
    assert lock_of(there).text == ""
    assert lock_of(there).read(there.row(ROW)) is None
