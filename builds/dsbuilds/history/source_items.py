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
    """Return the lines of code with its comments left out; line numbers stay the same."""
    bare = _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n") or " ", text)
    return bare.split("\n")


def can_split(path: str) -> bool:
    return path.endswith(SPLIT)


def items(path: str, text: str) -> dict[str, str]:
    """Map keys to the text of every item and of what lies between; together they are the file."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    lines += [last] if last else []
    splitter = _Splitter(lines=lines, bare=without_comments(text), rust=path.endswith(".rs"))
    items_by_key: dict[str, str] = {}
    for key, first, end in splitter.parts(0, len(lines), ""):
        unique, number = key, 1
        while unique in items_by_key:
            number += 1
            unique = f"{key} #{number}"
        items_by_key[unique] = "".join(lines[first:end])
    return items_by_key


def changed_items(path: str, before: str, after: str) -> set[str]:
    """The keys of the items by which two versions differ; how code is laid out does not count."""
    old, new = items(path, before), items(path, after)
    return {key for key in {**old, **new} if not _same(old.get(key), new.get(key))}


def merged(path: str, base: str, ours: str, theirs: str, merge: Merge) -> ItemMerge:
    """Return each item from the side that changed it; ``merge`` is asked where both did."""
    versions = tuple(items(path, text) for text in (base, ours, theirs))
    merged_items: dict[str, str] = {}
    both_changed: list[str] = []
    overlaps: list[str] = []
    for key in dict.fromkeys(key for version in versions for key in version):
        base_item, our_item, their_item = (version.get(key) for version in versions)
        if (
            base_item is not None
            and (our_item is None or their_item is None)
            and _same(our_item, their_item)
        ):
            item = None  # an empty line that one side took away
        elif _same(our_item, their_item):
            item = their_item if our_item == base_item or our_item is None else our_item
        elif _same(base_item, our_item):
            item = their_item
        elif _same(base_item, their_item):
            item = our_item
        elif base_item is None or our_item is None or their_item is None:
            item = our_item
            overlaps.append(key)
        else:
            item = merge(base_item, our_item, their_item)
            (overlaps if item is None else both_changed).append(key)
        if item is not None:
            merged_items[key] = item
    order = _order(versions[1], versions[2], merged_items)
    overlaps += _torn(merged_items)
    return ItemMerge(
        text="".join(merged_items[key] for key in order),
        both=tuple(map(title, both_changed)),
        overlaps=tuple(dict.fromkeys(overlaps)),
    )


def title(key: str) -> str:
    """Return how an item is called for a reader: ``fn check in impl Plugin``."""
    *outer, own = key.removeprefix(BETWEEN).split(WITHIN)
    name = " in ".join(filter(None, [own.removesuffix(OPENS).removesuffix(CLOSES), *outer[::-1]]))
    if not key.startswith(BETWEEN):
        return name
    return f"what follows {name}" if name else "the first lines"


def _same(first: str | None, second: str | None) -> bool:
    if first is None or second is None:
        return (first or second or "").strip() == ""
    return first.split() == second.split()


def _order(
    ours: Mapping[str, str], theirs: Mapping[str, str], merged_items: Mapping[str, str]
) -> list[str]:
    """Return our order, with what only the other side has behind what precedes it there."""
    order = [key for key in ours if key in merged_items]
    previous = ""
    for key in theirs:
        if key not in merged_items:
            continue
        if key not in ours:
            order.insert(order.index(previous) + 1 if previous else 0, key)
        previous = key
    return order


def _torn(merged_items: Mapping[str, str]) -> list[str]:
    """Return containers of which something is left, but not both their ends."""
    outer = {
        key.rpartition(WITHIN)[0].removeprefix(BETWEEN) for key in merged_items if WITHIN in key
    }
    outer |= {key[: -len(OPENS)] for key in merged_items if key.endswith((OPENS, CLOSES))}
    return [
        key
        for key in sorted(outer - {""})
        if not {key + OPENS, key + CLOSES} <= merged_items.keys()
    ]


@dataclass(frozen=True, kw_only=True)
class _Splitter:
    lines: list[str]
    bare: list[str]  # the same lines without comments
    rust: bool

    def parts(self, start: int, end: int, outer: str) -> Iterator[tuple[str, int, int]]:
        """Yield key, first line and the line after the last one, of all lines from ``start`` on."""
        column = self._column(start, end)
        loose, last = start, outer
        while start < end:
            item = self._item(start, end, column)
            if item is None:
                start += 1
                continue
            name, stop, opened = item
            first = self._with_comment(start, loose)
            if loose < first:
                yield f"{BETWEEN}{last}", loose, first
            last = f"{outer}{name}"
            if opened is not None and self.rust and _CONTAINER.match(self._words(start, opened)):
                yield last + OPENS, first, opened + 1
                yield from self.parts(opened + 1, stop - 1, last + WITHIN)
                yield last + CLOSES, stop - 1, stop
            else:
                yield last, first, stop
            start = loose = stop
        if loose < end:
            yield f"{BETWEEN}{last}", loose, end

    def _column(self, start: int, end: int) -> str:
        """Return the white space in front of what stands here."""
        line = next((line for line in self.bare[start:end] if line.strip()), "")
        return line[: len(line) - len(line.lstrip())]

    def _item(self, start: int, end: int, column: str) -> tuple[str, int, int | None] | None:
        """Name, the line after it, and the line with its brace, if one, of an item that begins."""
        if not self._stands(start, column) or self.bare[start][len(column)] in "{})":
            return None
        if self.bare[start].lstrip().startswith("#") and not self.rust:
            return self._define(start, end)
        for number in range(start, min(start + LONGEST_HEADER, end)):
            bare = self.bare[number].rstrip()
            if not bare or (number > start and bare.lstrip().startswith("#") and not self.rust):
                return None
            if "{" in bare and bare.count("{") > bare.count("}"):
                stop = self._end(number + 1, end, column)
                return None if stop is None else (self._name(start, number), stop, number)
            if bare.endswith((";", "}")):
                return f"{self._name(start, number)};", number + 1, None
        return None

    def _define(self, start: int, end: int) -> tuple[str, int, int | None] | None:
        match = _DEFINE.match(self.bare[start].lstrip())
        if match is None:
            return None
        stop = start + 1
        while stop < end and self.lines[stop - 1].rstrip().endswith("\\"):
            stop += 1
        return f"#define {match['name']}", stop, None

    def _end(self, start: int, end: int, column: str) -> int | None:
        """Return the line after the brace that closes in this column."""
        for line in range(start, end):
            if self._stands(line, column) and self.bare[line][len(column)] == "}":
                return line + 1
        return None

    def _stands(self, line: int, column: str) -> bool:
        bare = self.bare[line]
        return (
            bare.startswith(column) and len(bare) > len(column) and not bare[len(column)].isspace()
        )

    def _with_comment(self, line: int, least: int) -> int:
        """Return where an item begins, with the comment that stands right above."""
        while line > least and self.lines[line - 1].strip() and not self.bare[line - 1].strip():
            line -= 1
        return line

    def _words(self, first: int, last: int) -> str:
        lines = (line.strip() for line in self.bare[first : last + 1])
        return " ".join(" ".join(line for line in lines if not _ATTRIBUTE.match(line)).split())

    def _name(self, first: int, last: int) -> str:
        header = re.split(r"[{;=]", self._words(first, last))[0].strip()
        if self.rust:
            match = _RUST.match(header)
            return f"{match['kind'].replace(' ', '')} {match['name']}" if match else header
        function = re.match(r"[^(]*?(\w+)\s*\(", header)
        return f"{function[1]}()" if function else header
