"""From matrix.yaml to a checked Matrix, and from a name to a part of it."""

from __future__ import annotations

import os
from pathlib import Path

import pydantic
from ruamel.yaml import YAML

from dsharness.errors import MatrixError
from dsharness.model import Matrix

NAME = "matrix.yaml"


def find_matrix() -> Path:
    """$DSBISECT_MATRIX, then the working folder's, then the packaged copy."""
    named = os.environ.get("DSBISECT_MATRIX")
    if named:
        return Path(named)
    here = Path(NAME)
    if here.exists():
        return here
    packaged = Path(__file__).parent / "data" / NAME
    return packaged if packaged.exists() else Path(__file__).parents[2] / NAME


def load_matrix(path: Path | None = None) -> Matrix:
    """The checked matrix of a file, or one MatrixError with everything that is wrong in it."""
    where = path or find_matrix()
    try:
        return Matrix.model_validate(YAML(typ="safe", pure=True).load(where))
    except pydantic.ValidationError as error:
        raise MatrixError(f"{where}: {error}") from error
