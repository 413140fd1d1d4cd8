"""The eras of 389-ds as data: what trees show, and what each thing needs (eras.yaml)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pydantic

from dsbuilds.toolchains.traits import Eras
from dsharness.errors import MatrixError
from dsharness.yaml_files.yaml_source import read_document

DATA = Path(__file__).parent / "eras.yaml"


@cache
def eras(path: Path = DATA) -> Eras:
    """The data of a file, read once; MatrixError says what is wrong in it."""
    document = read_document(path)
    try:
        return Eras.model_validate_json(json.dumps(document.data), strict=True)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise MatrixError(f"{path}: {where}: {first['msg']}") from error
