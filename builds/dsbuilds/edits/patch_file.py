"""Several edits as one patch file, as a package would carry it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence

from dsbuilds.edits.edit import Files, Patch
from dsbuilds.edits.known_edits import parse
from dsharness.errors import EditError
from dsharness.model import Promise

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file\n"


def patch_of(texts: Sequence[str], files: Files) -> Patch:
    """One diff of all edits, each applied to what the ones before it left."""
    named = [(*parse(text), text) for text in texts]
    edited: dict[str, str] = {}
    promise = Promise()

    def current(path: str) -> str | None:
        return edited[path] if path in edited else files(path)

    for edit, value, _ in named:
        result = edit.apply(value, current)
        edited |= result.files
        promise = promise.then(result.promise)
    diff = unified({path: files(path) or "" for path in edited}, edited)
    if not diff:
        raise EditError(
            f"{', '.join(texts)}: together they change nothing in the source", hint="leave them out"
        )
    titles = [f"{edit.name}={value}: {edit.title}" for edit, value, _ in named]
    return Patch(
        name="+".join(f"{edit.name}={value}" for edit, value, _ in named),
        title="; ".join(titles),
        text=_header(titles) + diff,
        promise=promise,
    )


def unified(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The difference of two sets of files in git's format."""
    return "".join(
        line
        for path in sorted(after)
        if before[path] != after[path]
        for line in _file_diff(path, before[path], after[path])
    )


def _file_diff(path: str, before: str, after: str) -> Iterator[str]:
    yield f"diff --git a/{path} b/{path}\n"
    hunks = difflib.unified_diff(_lines(before), _lines(after), f"a/{path}", f"b/{path}", n=CONTEXT)
    for line in hunks:
        yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def _lines(text: str) -> list[str]:
    """Lines as git counts them: str.splitlines would also split at form feeds."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _header(titles: Sequence[str]) -> str:
    """DEP-3, without a date: the same edits of the same source are the same patch."""
    first, *more = titles
    description = "".join(f" {title}\n" for title in more)
    return (
        f"Description: {first}\n{description}Origin: vendor, dsbisect\nForwarded: not-needed\n---\n"
    )
