"""What every request to several machines has: the matrix and its lock as texts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import load_matrix
from dsharness.model import Matrix, SharedRun, Value
from dsharness.paths import cache_home
from dsharness.process.command import writing
from dsimages.matrix_lock import MatrixLock


class MatrixTexts(Value):
    """A matrix as it travels: each machine builds its images from it."""

    text: str
    lock: str

    @classmethod
    def of(cls, matrix: Matrix) -> Self:
        if matrix.file is None:
            raise MatrixError("the matrix was not read from a file", hint="name one with --matrix")
        return cls(
            text=matrix.file.read_text(encoding="utf-8"),
            lock=MatrixLock.of_matrix(matrix.file).text,
        )

    def loaded(self, run: SharedRun) -> Matrix:
        """The matrix, from files of this machine's own; its rows hold what the first's do."""
        lock = (run.prepared.lock if run.prepared else "") or self.lock
        matrix, _ = (
            kept_file(run, f"matrix.{kind}", text)
            for kind, text in (("yaml", self.text), ("lock", lock))
        )
        return load_matrix(matrix, folder=False)


def kept_file(run: SharedRun, name: str, text: str) -> Path:
    """A file of a run on this machine; an empty one is not written."""
    folder = cache_home() / "shared" / str(uuid.UUID(run.id))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if text and not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def refuse_unshared(given: Mapping[str, bool]) -> None:
    """UsageError for an option that machines cannot share yet."""
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(f"{option} is not possible with --on", hint=f"leave out {option}, or --on")
