"""The JSON Schema of matrix.yaml, for editors."""

from __future__ import annotations

import json

from dsharness.model import Matrix
from dsharness.yaml_files.model_keys import Schema, schema_of


def matrix_schema() -> Schema:
    """What a matrix may say, as JSON Schema 2020-12."""
    return schema_of(Matrix)


def schema_text() -> str:
    """The committed file's whole text."""
    return json.dumps(matrix_schema(), indent=2, ensure_ascii=False) + "\n"
