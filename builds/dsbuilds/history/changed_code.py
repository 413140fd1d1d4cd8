"""Which lines of C code a change touches, and in which functions they lie. Core pure logic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk, PatchedFile, PatchSet

from dsbuilds.history.relevant_files import facts_of
from dsbuilds.sources.source_tree import Tree
from dsharness.errors import SourceError
from dsharness.plain_text import plain
from dsharness.products.product import SERVER

C_FILE = re.compile(r"[\w.+/-]+\.(?:c|cc|cpp|cxx)", re.ASCII)  # a name that a shell leaves alone
LONGEST_HEADER = 20  # lines from a function's return type to its body
_COMMENT = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | ("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE,
)
_PROTOTYPE = re.compile(r"\s*[A-Za-z_][\w\s*]*\([^(){}=]*\)\s*;\s*")


@dataclass(frozen=True, kw_only=True)
class Place:
    """Lines of a C file that belong together; of a removal, the lines on its two sides."""

    file: str
    first: int
    last: int
    opens: int  # the line with the next brace, where these lines may be a function's header


@dataclass(frozen=True, kw_only=True)
class FunctionCount:
    """A function, and how often it ran."""

    file: str
    name: str
    first: int
    last: int
    calls: int

    def holds(self, place: Place) -> bool:
        if place.file != self.file:
            return False
        inside = self.first <= place.first and place.last <= self.last
        header = place.first < self.first <= place.opens <= self.last
        return inside or header


@dataclass(frozen=True, kw_only=True)
class ChangedCode:
    """What a change touches: places in C code, and, in words, what no C function can show."""

    places: tuple[Place, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(place.file for place in self.places))


def changed_code(before: Tree, after: Tree) -> ChangedCode:
    """How two sources differ in what the server is made of; comments do not count."""
    kind_of = facts_of(after.listing()).kind_of
    done = after.git.call(
        "diff-tree", "-r", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--no-color", before.id, after.id,
    )  # fmt: skip
    if not done.ok:
        raise SourceError(f"what changed between {before.origin} and {after.origin} is not known")
    return code_of(
        done.stdout,
        before=lambda path: before.read(path) or "",
        after=lambda path: after.read(path) or "",
        counts=lambda path: kind_of(path) == SERVER,
    )


def code_of(
    diff: str,
    *,
    before: Callable[[str], str],
    after: Callable[[str], str],
    counts: Callable[[str], bool],
) -> ChangedCode:
    """The same from a diff without context, and the text of the files on both sides."""
    try:
        files = [file for file in PatchSet(diff) if counts(file.path)]
    except UnidiffParseError:
        return ChangedCode(others=("a change that cannot be read as a diff",))
    places: list[Place] = []
    others: list[str] = []
    for file in files:
        if file.is_removed_file or not C_FILE.fullmatch(file.path):
            others.append(f"{plain(file.path)} is {_kind(file)}")
        else:
            places += _places(file, before(file.path), after(file.path))
    return ChangedCode(places=tuple(places), others=tuple(others))


def _kind(file: PatchedFile) -> str:
    if file.is_removed_file:
        return "removed"
    known = {"rs": "Rust", "h": "a header, which any file may use"}
    return known.get(file.path.rpartition(".")[2], "not C code")


def _places(file: PatchedFile, before: str, after: str) -> Iterator[Place]:
    old, new = without_comments(before), without_comments(after)
    for hunk in file:
        if _words(old, _source(hunk)) == _words(new, _target(hunk)):
            continue
        added = [number for number in _target(hunk) if _matters(new, number)]
        for number in added:
            yield Place(file=file.path, first=number, last=number, opens=_opens(new, number))
        if not added and any(_matters(old, number) for number in _source(hunk)):
            # A removal stands between two lines; else comments took the place of code.
            first = hunk.target_start
            last = first + max(1, hunk.target_length - 1)
            yield Place(file=file.path, first=first, last=last, opens=first)


def _target(hunk: Hunk) -> range:
    return range(hunk.target_start, hunk.target_start + hunk.target_length)


def _source(hunk: Hunk) -> range:
    return range(hunk.source_start, hunk.source_start + hunk.source_length)


def _words(lines: list[str], numbers: range) -> list[str]:
    """The code of some lines, however it is laid out."""
    return [word for at in numbers if 0 < at <= len(lines) for word in lines[at - 1].split()]


def without_comments(text: str) -> list[str]:
    """The lines of C code with its comments left out; line numbers stay the same."""
    bare = _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n") or " ", text)
    return bare.split("\n")


def _matters(lines: list[str], number: int) -> bool:
    """Whether a line can change what runs; a function's declaration alone cannot."""
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return bool(line.strip()) and not _PROTOTYPE.fullmatch(line)


def _opens(lines: list[str], number: int) -> int:
    for at in range(number, min(number + LONGEST_HEADER, len(lines) + 1)):
        line = lines[at - 1]
        if "{" in line:
            return at
        if re.search(r"[;}]|^\s*#", line):
            break
    return number


def functions_at(
    places: Iterable[Place], known: Iterable[FunctionCount]
) -> tuple[tuple[FunctionCount, ...], tuple[Place, ...]]:
    """The functions that these places lie in, and the places that lie in none."""
    known, hit, outside = tuple(known), dict[FunctionCount, None](), []
    for place in places:
        found = [each for each in known if each.holds(place)]
        hit |= dict.fromkeys(found)
        if not found:
            outside.append(place)
    return tuple(hit), tuple(outside)
