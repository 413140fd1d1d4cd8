"""A YAML file as a value of its model, or everything that is wrong in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from dsharness.model import Value
from dsharness.yaml_files.problems import FileProblemsError, Problem
from dsharness.yaml_files.shape import shape_findings
from dsharness.yaml_files.yaml_source import read_document

V = TypeVar("V", bound=Value)


def read_checked(path: Path, model: type[V], *, hint: str = "correct the file") -> V:
    """One value; FileProblemsError has file and line of each thing that is wrong."""
    document = read_document(path)
    problems: list[Problem] = [
        *document.findings,
        *shape_findings(model, document.data, document.places),
    ]
    if problems:
        raise FileProblemsError(path, problems, document.places, hint=hint)
    return model.model_validate_json(json.dumps(document.data), strict=True)
