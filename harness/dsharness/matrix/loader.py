"""The way from matrix.yaml to a checked Matrix, and from a name to a part of it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from dsharness.errors import MatrixError
from dsharness.matrix.cross_checks import (
    Draft,
    contradiction_findings,
    draft_of,
    reference_findings,
    workload_contradictions,
)
from dsharness.matrix.joined_rows import joined
from dsharness.model import DirectoryWorkload, Matrix, Row, Series, Settings, Workload, WorkloadFile
from dsharness.yaml_files.problems import FileProblemsError, suggestion
from dsharness.yaml_files.shape import checked, read_checked, refuse_problems, schema_of
from dsharness.yaml_files.yaml_source import read_document

NAME = "matrix.yaml"
PACKAGED = Path(__file__).parents[1] / "data" / NAME
HINT = "correct the file, then `dsbisect check`; docs/matrix.md has examples"
SHAPE_HINT = "docs/matrix.md has examples; `dsbisect matrix schema` prints what a matrix may say"
UNREAD_HINT = "name a readable file; a matrix with --matrix or $DSBISECT_MATRIX"
WORKLOAD_HINT = "write it as in a matrix: docs/workloads.md has an example"


class Named(Protocol):
    """Anything in the matrix that has an id."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Named)


def find_matrix(*, folder: bool = True) -> Path:
    """Return $DSBISECT_MATRIX, then the working folder's, then the packaged copy.

    Without ``folder`` the working folder's is left out: in a checkout it is the commit's own.
    """
    named = os.environ.get("DSBISECT_MATRIX")
    if named:
        return Path(named)
    here = Path(NAME)
    if folder and here.exists():
        return here
    return PACKAGED if PACKAGED.exists() else Path(__file__).parents[3] / NAME


def load_matrix(path: Path | None = None, *, folder: bool = True) -> Matrix:
    """The checked matrix of a file, or one MatrixError with everything that is wrong in it."""
    place = path or find_matrix(folder=folder)
    document = joined(read_document(place, hint=SHAPE_HINT, unread=UNREAD_HINT), hint=SHAPE_HINT)
    matrix, problems = checked(Matrix, document)
    draft = draft_of(document.data) if matrix is None else Draft.of(matrix)
    problems += [*reference_findings(draft), *contradiction_findings(draft)]
    if problems or matrix is None:
        raise FileProblemsError(document.path, problems, document.places, hint=HINT)
    return matrix.model_copy(update={"file": document.path})


def find_row(matrix: Matrix, row_id: str) -> Row:
    """Return the row of that id, or MatrixError with the nearest id there is."""
    return _find("row", matrix.rows, row_id, "`dsbisect list rows` describes them")


def find_series(matrix: Matrix, series_id: str) -> Series:
    """Return the series of that id, or MatrixError with the nearest id there is."""
    return _find("series", matrix.series, series_id, "`dsbisect list series` describes them")


def find_workload(matrix: Matrix, name: str, folder: Path = Path()) -> Workload:
    """Return the workload of that id or in that file, or MatrixError with the nearest id there is.

    ``ID@USERS`` is the same load on a directory of so many users. A relative file is looked for
    in ``folder``, which is otherwise the working folder.
    """
    workload_id, separator, users = name.rpartition("@")
    if separator and SIZE.fullmatch(users):
        return _sized(find_workload(matrix, workload_id, folder), int(users))
    if _is_file(name):
        return _read_workload(folder / name)
    if separator and (
        _is_file(workload_id) or workload_id in {workload.id for workload in matrix.workloads}
    ):
        raise MatrixError(
            f"{name}: {users!r} is no number of users",
            hint=f"1 to {10**USER_DIGITS - 1}, such as {workload_id}@1000",
        )
    return _find("workload", matrix.workloads, name, "`dsbisect list workloads` describes them")


def _is_file(name: str) -> bool:
    return Path(name).suffix in {".yaml", ".yml"}


def _sized(workload: Workload, users: int) -> Workload:
    name = f"{workload.named}@{users}"
    if not isinstance(workload, DirectoryWorkload):
        raise MatrixError(
            f"{name}: {workload.id} is no load on a directory's users",
            hint=f"name it without a size: {workload.id}",
        )
    if len(f"{workload.id}-{users}") > LONGEST_ID:
        raise MatrixError(f"{name}: the id of {workload.id} is too long for a size after it")
    sized = workload.sized(users)
    for parameter, allowed in sized.contradictions():
        sizes = range(users + 1, users + 1 + SIZES_TRIED)
        fit = next((size for size in sizes if not any(workload.sized(size).contradictions())), None)
        example = "" if fit is None else f", such as {fit}"
        raise MatrixError(f"{name}: {parameter}: {allowed}", hint=f"choose another size{example}")
    return sized.model_copy(update={"file": name})


USER_DIGITS = 7  # of a user's name
SIZE = re.compile(rf"[1-9][0-9]{{0,{USER_DIGITS - 1}}}")
SIZES_TRIED = 200  # for one that would do: users share things by up to so many
LONGEST_ID = 64


def _read_workload(path: Path) -> Workload:
    """Return a load that its user wrote; MatrixError with everything that is wrong in it."""
    hint = WORKLOAD_HINT
    (workload,) = read_checked(path, WorkloadFile, hint=hint).workloads
    refuse_problems(path, list(workload_contradictions(0, workload)), hint=hint)
    return workload.model_copy(update={"file": str(path)})


def find_settings(matrix: Matrix, settings_id: str) -> Settings:
    """Return the settings of that id, or MatrixError with the nearest id there is."""
    return _find(
        "settings", matrix.settings, settings_id, "`dsbisect list settings` describes them"
    )


def find_profile(matrix: Matrix, profile_id: str | None) -> tuple[Workload, ...]:
    """Return the workloads of that profile; of none, the default's."""
    wanted_id = profile_id or matrix.defaults.profile
    profile = _find("profile", matrix.profiles, wanted_id) if wanted_id else matrix.defaults
    return tuple(find_workload(matrix, name) for name in profile.workloads)


def _find(noun: str, things: Sequence[T], wanted_id: str, hint: str = "there are") -> T:
    for thing in things:
        if thing.id == wanted_id:
            return thing
    ids = [thing.id for thing in things]
    raise MatrixError(
        f"no {noun} {wanted_id!r} in the matrix.{suggestion(wanted_id, ids)}",
        hint=f"{hint}: {', '.join(ids)}",
    )


def schema_text() -> str:
    """Return the text of matrix.schema.json: what a matrix may say, as JSON Schema 2020-12."""
    return json.dumps(schema_of(Matrix), indent=2, ensure_ascii=False) + "\n"
