"""Reading a unified diff: its files and hunks, by their own counts of lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from dsharness.errors import EditError

HUNK = re.compile(r"@@ -(?P<start>\d+)(?:,(?P<old>\d+))? \+\d+(?:,(?P<new>\d+))? @@", re.ASCII)
NAMED = re.compile(
    r'(?P<mark>---|\+\+\+|rename from|rename to|copy from|copy to) "?(?P<path>[^\t"]+)'
)
AS_DIFF = "make it with `git diff` or `diff -ru a b`, to be applied with -p1"


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """One change; ``start`` and ``count`` are lines of the old file."""

    file: str
    start: int
    count: int
    text: str


@dataclass
class Diff:
    """What a diff names and changes, in its order."""

    paths: list[tuple[str, str]] = field(default_factory=list)  # the mark before a path, the path
    hunks: list[Hunk] = field(default_factory=list)


def read_diff(name: str, text: str) -> Diff:
    """The files and hunks of a diff; EditError when a hunk is cut short."""
    diff, file, lines = Diff(), "", text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if head := HUNK.match(line):
            end = _end(name, lines, at, head)
            whole = "".join(f"{part}\n" for part in lines[at:end])
            old = _count(head["old"])
            diff.hunks.append(Hunk(file=file, start=int(head["start"]), count=old, text=whole))
            at = end
            continue
        if found := NAMED.match(line):
            path = found["path"].rstrip()
            diff.paths.append((found["mark"], path))
            # A deleted file is named only by its old side.
            file = file if path == "/dev/null" else path.partition("/")[2]
        at += 1
    return diff


def hunk_at(text: str, file: str, line: int) -> str:
    """The hunk of a patch that changes a line of a file, as git names it; empty if none does."""
    hunks = [hunk for hunk in read_diff("the patch", text).hunks if hunk.file == file]
    exact = [hunk.text for hunk in hunks if hunk.start == line]
    around = [hunk.text for hunk in hunks if hunk.start <= line < hunk.start + hunk.count]
    return next(iter([*exact, *around]), "")


def _end(name: str, lines: list[str], at: int, head: re.Match[str]) -> int:
    """The line after a hunk."""
    old, new = _count(head["old"]), _count(head["new"])
    end = at + 1
    while end < len(lines) and (old or new):
        # Some tools strip the blank that stands for an empty line.
        mark = lines[end][:1] or " "
        if mark not in " +-\\" or (end == len(lines) - 1 and not lines[end]):
            break
        old -= mark in " -"
        new -= mark in " +"
        end += 1
    if old or new:
        raise EditError(
            f"{name}, line {end + 1}: the hunk that begins in line {at + 1} is not whole",
            hint=AS_DIFF,
        )
    return end + 1 if lines[end : end + 1] and lines[end].startswith("\\") else end


def _count(written: str | None) -> int:
    return 1 if written is None else int(written)
