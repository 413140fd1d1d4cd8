"""A C or Rust file as its items (functions, constants, methods), and three versions merged by them.

No grammar is needed: in these sources only what ends an item stands in the item's own column. A
file that is laid out otherwise has fewer and larger items, so that more of it overlaps.
Core pure logic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

SPLIT = (".c", ".cc", ".cpp", ".cxx", ".h", ".rs")
BETWEEN = "after "  # the key of the text that follows an item
WITHIN = "::: "  # between the keys of a container and of an item in it
OPENS, CLOSES = " {", " }"  # the keys of a container's first and last lines
LONGEST_HEADER = 25  # lines from the first word of an item to its brace
_RUST = re.compile(
    r"(?:pub(?: ?\([^)]*\))? )?(?:(?:default|unsafe|async|const|extern \"[^\"]*\") )*"
    r"(?P<kind>fn|mod|struct|enum|trait|union|type|static|const|macro_rules ?!) ?(?:mut )?"
    r"(?P<name>\w+)"
)
_CONTAINER = re.compile(r"(?:pub(?: ?\([^)]*\))? )?(?:unsafe )?(?:impl|mod|trait|extern)\b")
_DEFINE = re.compile(r"#\s*define\s+(?P<name>\w+)")
_ATTRIBUTE = re.compile(r"#!?\[")
_COMMENT = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | ("(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')""",
    re.DOTALL | re.VERBOSE,
)

Merge = Callable[[str, str, str], str | None]  # of base, ours and theirs; None: they overlap


@dataclass(frozen=True, kw_only=True)
class ItemMerge:
    """Three versions of a file merged item by item."""

    text: str
    both: tuple[str, ...] = ()  # items that both sides changed, in other lines
    overlaps: tuple[str, ...] = ()  # items that both sides changed in the same lines


def without_comments(text: str) -> list[str]:
    """The lines of code with its comments left out; line numbers stay the same."""
    bare = _COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n") or " ", text)
    return bare.split("\n")


def can_split(path: str) -> bool:
    return path.endswith(SPLIT)


def items(path: str, text: str) -> dict[str, str]:
    """Key -> text of every item and of what lies between them; together they are the file."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    lines += [last] if last else []
    splitter = _Splitter(lines=lines, bare=without_comments(text), rust=path.endswith(".rs"))
    found: dict[str, str] = {}
    for key, first, end in splitter.parts(0, len(lines), ""):
        unique, number = key, 1
        while unique in found:
            number += 1
            unique = f"{key} #{number}"
        found[unique] = "".join(lines[first:end])
    return found


def changed_items(path: str, before: str, after: str) -> set[str]:
    """The keys of the items by which two versions differ; how code is laid out does not count."""
    old, new = items(path, before), items(path, after)
    return {key for key in {**old, **new} if not _same(old.get(key), new.get(key))}


def merged(path: str, base: str, ours: str, theirs: str, merge: Merge) -> ItemMerge:
    """Each item from the side that changed it; ``merge`` is asked where both did."""
    versions = tuple(items(path, text) for text in (base, ours, theirs))
    kept: dict[str, str] = {}
    both: list[str] = []
    overlaps: list[str] = []
    for key in dict.fromkeys(key for version in versions for key in version):
        old, mine, other = (version.get(key) for version in versions)
        if old is not None and (mine is None or other is None) and _same(mine, other):
            chosen = None  # an empty line that one side took away
        elif _same(mine, other):
            chosen = other if mine == old or mine is None else mine
        elif _same(old, mine):
            chosen = other
        elif _same(old, other):
            chosen = mine
        elif old is None or mine is None or other is None:
            chosen = mine
            overlaps.append(key)
        else:
            chosen = merge(old, mine, other)
            (overlaps if chosen is None else both).append(key)
        if chosen is not None:
            kept[key] = chosen
    order = _order(versions[1], versions[2], kept)
    overlaps += _torn(kept)
    return ItemMerge(
        text="".join(kept[key] for key in order),
        both=tuple(map(title, both)),
        overlaps=tuple(dict.fromkeys(overlaps)),
    )


def title(key: str) -> str:
    """How an item is called for a reader: ``fn check in impl Plugin``."""
    *outer, own = key.removeprefix(BETWEEN).split(WITHIN)
    name = " in ".join(filter(None, [own.removesuffix(OPENS).removesuffix(CLOSES), *outer[::-1]]))
    if not key.startswith(BETWEEN):
        return name
    return f"what follows {name}" if name else "the first lines"


def _same(one: str | None, other: str | None) -> bool:
    if one is None or other is None:
        return (one or other or "").strip() == ""
    return one.split() == other.split()


def _order(
    ours: Mapping[str, str], theirs: Mapping[str, str], kept: Mapping[str, str]
) -> list[str]:
    """Our order, with what only the other side has behind what precedes it there."""
    order = [key for key in ours if key in kept]
    before = ""
    for key in theirs:
        if key not in kept:
            continue
        if key not in ours:
            order.insert(order.index(before) + 1 if before else 0, key)
        before = key
    return order


def _torn(kept: Mapping[str, str]) -> list[str]:
    """Containers of which something is left, but not both their ends."""
    outer = {key.rpartition(WITHIN)[0].removeprefix(BETWEEN) for key in kept if WITHIN in key}
    outer |= {key[: -len(OPENS)] for key in kept if key.endswith((OPENS, CLOSES))}
    return [key for key in sorted(outer - {""}) if not {key + OPENS, key + CLOSES} <= kept.keys()]


@dataclass(frozen=True, kw_only=True)
class _Splitter:
    lines: list[str]
    bare: list[str]  # the same lines without comments
    rust: bool

    def parts(self, at: int, end: int, outer: str) -> Iterator[tuple[str, int, int]]:
        """Key, first line and the line after the last one, of all lines from ``at`` on."""
        column = self._column(at, end)
        loose, last = at, outer
        while at < end:
            item = self._item(at, end, column)
            if item is None:
                at += 1
                continue
            name, stop, opened = item
            first = self._with_comment(at, loose)
            if loose < first:
                yield f"{BETWEEN}{last}", loose, first
            last = f"{outer}{name}"
            if opened is not None and self.rust and _CONTAINER.match(self._words(at, opened)):
                yield last + OPENS, first, opened + 1
                yield from self.parts(opened + 1, stop - 1, last + WITHIN)
                yield last + CLOSES, stop - 1, stop
            else:
                yield last, first, stop
            at = loose = stop
        if loose < end:
            yield f"{BETWEEN}{last}", loose, end

    def _column(self, at: int, end: int) -> str:
        """The white space in front of what stands here."""
        line = next((line for line in self.bare[at:end] if line.strip()), "")
        return line[: len(line) - len(line.lstrip())]

    def _item(self, at: int, end: int, column: str) -> tuple[str, int, int | None] | None:
        """Name, the line after it, and the line with its brace, if one, of an item that begins."""
        if not self._stands(at, column) or self.bare[at][len(column)] in "{})":
            return None
        if self.bare[at].lstrip().startswith("#") and not self.rust:
            return self._define(at, end)
        for line in range(at, min(at + LONGEST_HEADER, end)):
            bare = self.bare[line].rstrip()
            if not bare or (line > at and bare.lstrip().startswith("#") and not self.rust):
                return None
            if "{" in bare and bare.count("{") > bare.count("}"):
                stop = self._end(line + 1, end, column)
                return None if stop is None else (self._name(at, line), stop, line)
            if bare.endswith((";", "}")):
                return f"{self._name(at, line)};", line + 1, None
        return None

    def _define(self, at: int, end: int) -> tuple[str, int, int | None] | None:
        found = _DEFINE.match(self.bare[at].lstrip())
        if found is None:
            return None
        stop = at + 1
        while stop < end and self.lines[stop - 1].rstrip().endswith("\\"):
            stop += 1
        return f"#define {found['name']}", stop, None

    def _end(self, at: int, end: int, column: str) -> int | None:
        """The line after the brace that closes in this column."""
        for line in range(at, end):
            if self._stands(line, column) and self.bare[line][len(column)] == "}":
                return line + 1
        return None

    def _stands(self, line: int, column: str) -> bool:
        bare = self.bare[line]
        return (
            bare.startswith(column) and len(bare) > len(column) and not bare[len(column)].isspace()
        )

    def _with_comment(self, at: int, least: int) -> int:
        """Where an item begins, with the comment that stands right above."""
        while at > least and self.lines[at - 1].strip() and not self.bare[at - 1].strip():
            at -= 1
        return at

    def _words(self, first: int, last: int) -> str:
        lines = (line.strip() for line in self.bare[first : last + 1])
        return " ".join(" ".join(line for line in lines if not _ATTRIBUTE.match(line)).split())

    def _name(self, first: int, last: int) -> str:
        header = re.split(r"[{;=]", self._words(first, last))[0].strip()
        if self.rust:
            found = _RUST.match(header)
            return f"{found['kind'].replace(' ', '')} {found['name']}" if found else header
        called = re.match(r"[^(]*?(\w+)\s*\(", header)
        return f"{called[1]}()" if called else header
