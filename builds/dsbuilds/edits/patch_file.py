"""Several edits as one patch file, as a package would carry it, and a user's own patch file.

Of a user's file it is asked whether it is a patch, and whether it may be applied to a tree.
"""

from __future__ import annotations

import difflib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path, PurePosixPath

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from dsbuilds.edits.edit import Files, Patch
from dsbuilds.edits.known_edits import parse
from dsharness.errors import EditError, UsageError
from dsharness.guarded_files import given_input
from dsharness.model import Promise

MOST_BYTES = 20 << 20
STRUCTURE = re.compile(r"^(?:--- |\+\+\+ |@@ -|diff --git ).*\r$", re.MULTILINE)
BINARY = re.compile(r"^(?:GIT binary patch$|Binary files .* differ$)", re.MULTILINE)
GIT = re.compile(r"^diff --git (?P<paths>.+)$", re.MULTILINE)
MOVED = re.compile(r"^(?:rename|copy) (?:from|to) (?P<path>.+)$", re.MULTILINE)
AS_DIFF = "make it with `git diff` or `diff -ru a b`, to be applied with -p1"


def user_patches(paths: Sequence[Path]) -> tuple[Patch, ...]:
    """The patches in files, each under a name that no other one has: a package holds them all."""
    patches: list[Patch] = []
    for patch in map(user_patch, paths):
        names = {earlier.name for earlier in patches}
        path = PurePosixPath(patch.name)
        numbered = (f"{path.stem}-{number}{path.suffix}" for number in count(2))
        name = next(name for name in chain([patch.name], numbered) if name not in names)
        patches.append(replace(patch, name=name))
    return tuple(patches)


def user_patch(path: Path) -> Patch:
    """The patch in a file; UsageError says what is wrong with it before anything is touched."""
    text = _text(path)
    if not text.strip():
        raise UsageError(f"{path}: the patch is empty", hint=AS_DIFF)
    if STRUCTURE.search(text):
        raise UsageError(
            f"{path}: its lines end with carriage returns", hint=f"`sed -i 's/\\r$//' {path}`"
        )
    if BINARY.search(text):
        raise UsageError(f"{path}: it changes binary files", hint="only text can be patched")
    _check_names(path, text)
    files = _files(path, text)
    if not any(files):
        raise UsageError(f"{path}: it contains no hunk (@@ -…)", hint=AS_DIFF)
    _check_files(path, files)
    whole = text if text.endswith("\n") else f"{text}\n"
    return Patch(name=path.name, title=f"the patch {path.name}", text=whole)


def _text(path: Path) -> str:
    try:
        data = given_input(str(path), most_bytes=MOST_BYTES)
    except OSError as error:
        raise UsageError(
            f"{path}: the patch cannot be read: {error.strerror}", hint="name a patch file"
        ) from error
    if b"\0" in data:
        raise UsageError(f"{path}: it is a binary file, not a patch", hint=AS_DIFF)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}, line {line}: it is not UTF-8 text", hint=AS_DIFF) from error


def _files(path: Path, text: str) -> PatchSet:
    """Return the files that a diff changes; UsageError says in which line it is none."""
    line_number = 0

    def lines() -> Iterator[str]:
        nonlocal line_number
        for line in io.StringIO(text):
            line_number += 1
            yield line

    try:
        return PatchSet(lines())
    except UnidiffParseError as error:
        problem = str(error).strip()
        wrong = (
            "a hunk names no file (---, +++) before it"
            if problem.startswith("Unexpected hunk")
            else f"a hunk is not whole: {problem}"
        )
        raise UsageError(f"{path}, line {line_number}: {wrong}", hint=AS_DIFF) from error


def _check_names(patch: Path, text: str) -> None:
    """Check what git says of a file before its diff."""
    for match in GIT.finditer(text):
        for path in match["paths"].replace('"', "").split():
            _check(patch, path)
    for match in MOVED.finditer(text):
        _check(patch, match["path"].strip('"'))


def _check_files(patch: Path, files: PatchSet) -> None:
    for quoted in (name for file in files for name in (file.source_file, file.target_file)):
        path = quoted.strip('"').rstrip()
        if path == "/dev/null":
            continue
        _check(patch, path)
        if "/" not in path:
            raise UsageError(
                f"{patch}: {path} has no leading folder to take away: it is not made for -p1",
                hint=AS_DIFF,
            )


def _check(patch: Path, path: str) -> None:
    parts = PurePosixPath(path).parts
    if path.startswith("/") or "/" in path.partition("/")[2][:1]:
        raise UsageError(f"{patch}: {path} is an absolute path", hint=AS_DIFF)
    if ".." in parts:
        raise UsageError(f"{patch}: {path} leads out of the source (..)", hint=AS_DIFF)


CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file\n"


def patch_of(texts: Sequence[str], files: Files) -> Patch:
    """Return one diff of all edits, each applied to what the ones before it left."""
    parsed = [(*parse(text), text) for text in texts]
    edited: dict[str, str] = {}
    promise = Promise()

    def current(path: str) -> str | None:
        return edited[path] if path in edited else files(path)

    for edit, value, _ in parsed:
        result = edit.apply(value, current)
        edited |= result.files
        promise = promise.then(result.promise)
    diff = unified({path: files(path) or "" for path in edited}, edited)
    if not diff:
        raise EditError(
            f"{', '.join(texts)}: together they change nothing in the source", hint="leave them out"
        )
    titles = [f"{edit.name}={value}: {edit.title}" for edit, value, _ in parsed]
    return Patch(
        name="+".join(f"{edit.name}={value}" for edit, value, _ in parsed),
        title="; ".join(titles),
        text=_header(titles) + diff,
        promise=promise,
    )


def unified(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the difference of two sets of files in git's format."""
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
    """Return lines as git counts them: str.splitlines would also split at form feeds."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines


def _header(titles: Sequence[str]) -> str:
    """Write DEP-3 without a date: the same edits of the same source are the same patch."""
    first, *more = titles
    description = "".join(f" {title}\n" for title in more)
    return (
        f"Description: {first}\n{description}Origin: vendor, dsbisect\nForwarded: not-needed\n---\n"
    )
