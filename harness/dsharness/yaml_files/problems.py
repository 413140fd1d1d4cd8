"""What is wrong in a file: where, which value, what is allowed; all of it at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dsharness.errors import MatrixError

KeyPath = tuple[str | int, ...]
MAX_SHOWN = 60  # characters of a value


@dataclass(frozen=True, kw_only=True)
class KeyPlace:
    """Where a value stands, and how it is spelled there when it is one word."""

    line: int
    text: str | None = None
    file: Path | None = None  # None: the one that was read


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing wrong; without a line, the nearest place of its path is meant."""

    path: KeyPath
    value: str | None
    allowed: str
    line: int | None = None


class FileProblemsError(MatrixError):
    """Everything wrong in one file, in the order of its lines."""

    def __init__(
        self,
        where: Path,
        findings: Iterable[Problem],
        places: Mapping[KeyPath, KeyPlace],
        *,
        hint: str,
    ) -> None:
        placed = set()
        for finding in findings:
            place = nearest_place(finding.path, places)
            file, line = str(place.file or where), finding.line or place.line
            placed.add((file != str(where), file, line, f"{file}:{line}: {render(finding)}"))
        self.lines = tuple(text for *_, text in sorted(placed))
        super().__init__("\n".join(self.lines), hint=hint)


def render(finding: Problem) -> str:
    """`key.path: value …: what is allowed`."""
    value = "" if finding.value is None else f" value {shown(finding.value)}:"
    return f"{spelled(finding.path)}:{value} {finding.allowed}"


def nearest_place(path: KeyPath, places: Mapping[KeyPath, KeyPlace]) -> KeyPlace:
    """Return where the key path stands, or the closest thing around it that exists."""
    paths = (path[:end] for end in range(len(path), 0, -1))
    return next((places[part] for part in paths if part in places), KeyPlace(line=1))


def spelled(path: KeyPath) -> str:
    """`rows[3].os.version`; the whole file is `(top level)`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "(top level)"


def shown(value: str) -> str:
    """Return a value on one line, quoted, not longer than a reader wants."""
    cut = value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "…"
    return repr(cut)


def suggestion(word: str, known_words: Iterable[str]) -> str:
    """` Perhaps you meant 'x'.`, or nothing when no known word is near."""
    near = difflib.get_close_matches(word[:64], sorted(known_words), n=1, cutoff=0.6)
    return f" Perhaps you meant {near[0]!r}." if near else ""
