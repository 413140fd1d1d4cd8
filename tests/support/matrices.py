"""Changes to the small matrix that a test works with."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """The document of a matrix file, written back at the end."""
    yaml = YAML()
    document = yaml.load(path)
    yield document
    with path.open("w", encoding="utf-8") as stream:
        yaml.dump(document, stream)


def add_twin(path: Path, row_id: str, twin: str, *further: str) -> None:
    """A row like another, with further packages, and the series `twins` of both."""
    with edited(path) as document:
        (row,) = (row for row in document["rows"] if row["id"] == row_id)
        made = copy.deepcopy(row)
        made["id"] = twin
        made["packages"]["install"] = [*made["packages"]["install"], *further]
        document["rows"].append(made)
        document["series"].append({"id": "twins", "title": "twins", "rows": [row_id, twin]})
