"""What every request to several machines has: the matrix and its lock as texts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self, TypeVar

from pydantic import Field

from dsharness.content_key import content_key
from dsharness.errors import MatrixError, UsageError
from dsharness.matrix import load_matrix
from dsharness.model import Matrix, SharedRun, Value
from dsharness.paths import cache_home
from dsharness.process.command import writing
from dsimages.matrix_lock import MatrixLock
from dsresults.stored_value import stored

MATRIX = "matrix.yaml"

V = TypeVar("V", bound=Value)


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
        matrix = kept_file(run, MATRIX, self.text)
        follow_lock(run, self.lock)
        return load_matrix(matrix, folder=False)


def follow_lock(run: SharedRun, asked: str = "") -> None:
    """Let this machine's rows hold what the first one's do, or what was asked; not its own."""
    lock = MatrixLock(path=kept_file(run, MATRIX, "").with_suffix(".lock"))
    lock.follow((run.prepared.lock if run.prepared else "") or asked)


class NamedText(Value):
    """A file as it travels; several may have the same name."""

    name: str = Field(pattern=r"^[^/\x00]*[^./\x00][^/\x00]*$", max_length=255)
    text: str

    def kept(self, run: SharedRun) -> Path:
        """The file on this machine, in a folder that no other one has."""
        return kept_file(run, f"{content_key(self.text)}/{self.name}", self.text)


def kept_file(run: SharedRun, name: str, text: str) -> Path:
    """A file of a run on this machine, as the run has it; an empty one is not written."""
    folder = cache_home() / "shared" / str(uuid.UUID(run.id))
    with writing(folder):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if text and not (file.exists() and file.read_bytes() == text.encode()):
            file.write_text(text, encoding="utf-8")
    return file


def document_in(kind: type[V], run: SharedRun) -> V:
    """What a run's request says; UnreadableError where this version cannot read it."""
    return stored(kind, run.request, f"request of run {run.id}")


def refuse_unshared(given: Mapping[str, bool]) -> None:
    """UsageError for an option that machines cannot share yet."""
    for option in (name for name, is_given in given.items() if is_given):
        raise UsageError(f"{option} is not possible with --on", hint=f"leave out {option}, or --on")
