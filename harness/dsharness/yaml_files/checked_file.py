"""A YAML file as a value of its model, or everything that is wrong in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import pydantic

from dsharness.model import Value
from dsharness.yaml_files.problems import FileProblemsError, Problem
from dsharness.yaml_files.shape import shape_findings
from dsharness.yaml_files.yaml_source import read_document

V = TypeVar("V", bound=Value)


def read_checked(path: Path, model: type[V], *, hint: str = "correct the file") -> V:
    """One value; FileProblemsError has file and line of each thing that is wrong."""
    document = read_document(path)
    try:
        value = model.model_validate_json(json.dumps(document.data), strict=True)
    except pydantic.ValidationError:
        found = shape_findings(model, document.data, document.places)
    else:
        found = []
    problems: list[Problem] = [*document.findings, *found]
    if problems:
        raise FileProblemsError(path, problems, document.places, hint=hint)
    return value
